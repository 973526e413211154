"""Timings, run by hand: `python -m benchmarks.NAME`. Compared in one run, as a ratio."""
