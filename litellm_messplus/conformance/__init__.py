"""Conformance checks for every encoder, head and score, yours and ours (after river's)."""
