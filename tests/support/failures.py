"""Failures that real proxies count while tests drive them, read from what the processes log.

Each is logged, the same kind at most once a minute, so a proxy that is killed leaves them too.
"""

import re
from pathlib import Path

COUNTED = re.compile(rb"\((\w+) so far: \d+\)")
_read: dict[Path, int] = {}


def follow(log: Path) -> None:
    """Look at the log of a proxy from now on."""
    _read.setdefault(log, 0)


def newly_counted() -> dict[str, list[str]]:
    """Return the failures that were logged since the last call, by the log they are in."""
    found = {}
    for log, place in list(_read.items()):
        if not log.exists():  # its folder is gone with its test
            del _read[log]
            continue
        with log.open("rb") as opened:
            opened.seek(place)
            text = opened.read()
        _read[log] = place + len(text)
        if names := sorted({each.decode() for each in COUNTED.findall(text)}):
            found[str(log)] = names
    return found
