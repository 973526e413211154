"""The log of requests, calls and labels, and snapshots of its fold. Knows the records, not who
writes them."""
