"""A client that sends the tiny zoo's tasks through the proxy, and reports the result."""
