"""Ids of our own: unique, not to be guessed, and in order of time."""

import os
import time

DRAWN = 4096
"""Random bytes that are asked of the system at once: for eight at a time, asking took 40 us."""
TAIL = 8

_tails: list[bytes] = []


def new_id() -> str:
    """32 hexadecimal digits: the time in nanoseconds, then 64 random bits.

    In order of time, so that a row goes to the end of every index on it: random ids touch a page
    of their own for each row and index, which took more CPU than the rest of the writing.
    """
    return f"{time.time_ns():016x}{_random_tail().hex()}"


def _random_tail() -> bytes:
    try:
        return _tails.pop()
    except IndexError:
        drawn = os.urandom(DRAWN)
        _tails.extend(drawn[start : start + TAIL] for start in range(TAIL, DRAWN, TAIL))
        return drawn[:TAIL]


os.register_at_fork(after_in_child=_tails.clear)  # or two processes would give the same ones out
