"""Sums over requests: the one set of figures, and how they are written."""
