"""What went wrong or was left out, counted since the start; shown by `GET /messplus/health`."""

import logging
import time
from collections import Counter

logger = logging.getLogger("litellm_messplus")

LOG_SECONDS = 60.0
"""One trace a minute and kind, with the count, so that a failing part cannot flood the log."""


class Counters:
    """Counts by name; the same failure is logged at most once a minute."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._logged: dict[str, float] = {}

    def add(self, name: str) -> None:
        """Count one."""
        self._counts[name] += 1

    def failure(self, name: str, message: str) -> None:
        """Count one and log it with the exception that is being handled, if any."""
        self.add(name)
        now = time.monotonic()
        if now - self._logged.get(name, -LOG_SECONDS) < LOG_SECONDS:
            return
        self._logged[name] = now
        logger.warning("%s (%s so far: %d)", message, name, self._counts[name], exc_info=True)

    def as_dict(self) -> dict[str, int]:
        """Every count by name."""
        return dict(sorted(self._counts.items()))
