"""Retention: what is older than a date leaves the log, into files or for good; its state stays."""
