"""Conformance checks for every encoder and every head, yours and ours (after river's)."""
