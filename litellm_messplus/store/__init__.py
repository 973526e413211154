"""The log of requests, calls and labels, and snapshots of its fold. Depends on the records, not on
their writers."""
