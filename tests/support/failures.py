"""Failures that real proxies count while tests drive them, read from what the processes log.

Each is logged, so a proxy that is killed leaves them too.
"""

import re
from pathlib import Path

COUNTED = re.compile(r"\((\w+) so far: \d+\)")
OTHERWISE = {
    "records_dropped": " that cannot be written: ",
    "fold_failures": " could not be folded in",
}
"""The counters whose failures are logged in other words, and these."""
LOG_EACH = """
from litellm_messplus.runtime import counters as runtime

runtime.LOG_SECONDS = 0.0
"""
"""What a proxy runs first, as its `sitecustomize`: of a kind it would log one failure a minute, and
those after it would be hidden from the tests that come next."""
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
            added = opened.read()
        _read[log] = place + len(added)
        text = added.decode(errors="replace")
        names = set(COUNTED.findall(text))
        names |= {name for name, words in OTHERWISE.items() if words in text}
        if names:
            found[str(log)] = sorted(names)
    return found
