"""Counters of failures, and the log lines that go with them."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Lines of the proxy's log. They may quote a client, whose text must not look like another line.

logger = logging.getLogger("litellm_messplus")
"""The package's only logger: handlers and filters attached here see every line."""
TRACEBACKS = logging.Formatter()


def escaped(text: str) -> str:
    """Escape unprintable characters, such as line ends and terminal colour codes."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def keep_in_line(record: logging.LogRecord) -> bool:
    """Format a record's message in one line, and its traceback indented below it."""
    record.msg, record.args = escaped(record.getMessage()), None
    if record.exc_info:
        lines = TRACEBACKS.formatException(record.exc_info).splitlines()
        record.exc_text = "\n".join(f"    {escaped(line)}" for line in lines)
    return True


logger.addFilter(keep_in_line)

# Failures and omissions, counted since the start; shown by `GET /messplus/health`.

LOG_SECONDS = 60.0
"""Seconds between two log lines of one kind, so that a failing part cannot flood the log."""


UNROUTED = "unrouted."
"""Prefix of the names of the answers that were not routed, of a zoo and a call type."""


class Counters:
    """The counts by name; the same failure is logged at most once a minute."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._logged: dict[str, float] = {}

    def add(self, name: str) -> None:
        """Count one."""
        self._counts[name] += 1

    def failure(self, name: str, message: str) -> None:
        """Count one and log it with the exception being handled, if any."""
        self.add(name)
        now = time.monotonic()
        if now - self._logged.get(name, -LOG_SECONDS) < LOG_SECONDS:
            return
        self._logged[name] = now
        logger.warning(
            "%s (%s so far: %d)", message, name, self._counts[name], exc_info=sys.exception()
        )

    @contextmanager
    def tolerated(self, name: str, message: str) -> Iterator[None]:
        """Count and log whatever fails within, and go on."""
        try:
            yield
        except Exception:
            self.failure(name, message)

    def as_dict(self) -> dict[str, int]:
        """Return every count by name."""
        return dict(sorted(self._counts.items()))
