"""Ids of our own: unique, not to be guessed, and in order of time."""

import secrets
import time


def new_id() -> str:
    """32 hexadecimal digits: the time in nanoseconds, then 64 random bits.

    In order of time, so that a row goes to the end of every index on it: random ids touch a page
    of their own for each row and index, which took more CPU than the rest of the writing.
    """
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"
