"""Checks: programs that judge an answer at once."""
