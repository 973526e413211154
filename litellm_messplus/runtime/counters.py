"""What every part of a running plugin may use: counters of what went wrong, code named in a
setting, and the version that is installed."""

import importlib
import logging
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

from litellm_messplus.runtime.errors import ConfigurationError

# What goes to the proxy's log. It may quote a client, whose text must not look like another line.

logger = logging.getLogger("litellm_messplus")
"""The package's only one: what is attached here sees every line."""
TRACEBACKS = logging.Formatter()


def escaped(text: str) -> str:
    """Escape what cannot be printed, such as ends of lines and what colours a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def keep_in_line(record: logging.LogRecord) -> bool:
    """Write what a record says in one line, and what it raised indented below it."""
    record.msg, record.args = escaped(record.getMessage()), None
    if record.exc_info:
        lines = TRACEBACKS.formatException(record.exc_info).splitlines()
        record.exc_text = "\n".join(f"    {escaped(line)}" for line in lines)
    return True


logger.addFilter(keep_in_line)

# What went wrong or was left out, counted since the start; shown by `GET /messplus/health`.

LOG_SECONDS = 60.0
"""One trace a minute and kind, with the count, so that a failing part cannot flood the log."""


class Counters:
    """The counts by name; the same failure is logged at most once a minute."""

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
        logger.warning(
            "%s (%s so far: %d)", message, name, self._counts[name], exc_info=sys.exception()
        )

    def as_dict(self) -> dict[str, int]:
        """Return every count by name."""
        return dict(sorted(self._counts.items()))


# Code of the operator's own, named in a setting as `package.module:attribute`.

DOTTED_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def load_attribute(path: str) -> Any:
    """Load what a module has under a name, or under a name within it (`module:Class.member`).

    Raises whatever importing it raises: ImportError, AttributeError, or any error of that code.
    """
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def load_part(key: str, path: str, kind: str, members: Sequence[str]) -> Any:
    """Load an object that has these members, or call what makes one without arguments.

    Raises ConfigurationError, with the ``key`` of the setting, for a path that does not lead to one
    of this ``kind``.
    """
    allowed = f"package.module:attribute of {kind}"

    def has_members(found: object) -> bool:
        return not isinstance(found, type) and all(hasattr(found, name) for name in members)

    try:
        found = load_attribute(path)
        part = found if has_members(found) else found()
    except Exception as error:  # the code of others may raise anything
        raise ConfigurationError(key, path, f"{allowed} ({error!r})") from error
    if not has_members(part):
        raise ConfigurationError(key, path, f"{allowed} with {', '.join(members)}")
    return part


# Which version is installed.

PACKAGE = "litellm-messplus"


def version() -> str:
    """Return the version of the installed package."""
    return metadata.version(PACKAGE)


# The end of a start that cannot go on.


def end_process(reason: str) -> NoReturn:
    """Print one message in place of a traceback, and end the process, so that no worker is started
    again."""
    print(f"\nmessplus: {reason}\n", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)
