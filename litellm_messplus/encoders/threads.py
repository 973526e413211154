"""How many cores an encoder may use."""

import os


def cores_for_encoding() -> int:
    """All but one, which the event loop keeps.

    torch's threads wait for each other at every layer: with both of two cores theirs and other
    work beside them, a text took a tiny encoder 1,100 ms, and 2 to 15 ms on one core alone.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) - 1)
