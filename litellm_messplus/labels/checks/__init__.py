"""Checks: what a program finds out about an answer at once."""
