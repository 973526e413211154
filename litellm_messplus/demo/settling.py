"""Waiting for the labels that come after the answer: a judge takes its time."""

import time
from collections.abc import Callable

QUIET_SECONDS = 10.0
"""Without a new label for so long, no more are waited for: not every request gets one."""
LONGEST_SECONDS = 600.0
"""However many still come."""
LOOK_SECONDS = 0.5
"""Between two looks."""


def wait_for_labels(
    labelled: Callable[[], int],
    requests: int,
    *,
    look_seconds: float = LOOK_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
    longest_seconds: float = LONGEST_SECONDS,
) -> None:
    """Until all ``requests`` are ``labelled``, which is asked again and again, or no more come."""
    start = last_news = time.monotonic()
    known = labelled()
    while known < requests:
        if time.monotonic() > min(last_news + quiet_seconds, start + longest_seconds):
            return
        time.sleep(look_seconds)
        found = labelled()
        if found > known:
            known, last_news = found, time.monotonic()
