"""One logged request explained, and requests listed, from the log alone."""
