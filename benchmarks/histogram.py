"""Counts of durations between fixed edges."""

from bisect import bisect_right

EDGES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Milliseconds."""


class Histogram:
    """The counts between the edges, the longest duration in milliseconds, and the sum of all in
    seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES) + 1)
        self.longest = 0.0
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_right(EDGES, seconds * 1000)] += 1
        self.longest = max(self.longest, seconds * 1000)
        self.total += seconds
