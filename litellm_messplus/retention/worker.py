"""Pruning in a process of its own, which a proxy starts: reading, writing and compressing old rows
takes no time from its requests.

Standard input is the task, standard output what was done; both are JSON.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from litellm_messplus.errors import MessplusError
from litellm_messplus.retention.prune import prune
from litellm_messplus.store.pruning import BusyPruningError

NICE = 10
"""Requests have the processor first."""


def task(database: str, keep_days: int, archive: str | None) -> bytes:
    """Encode what to write to standard input: the database's URL may hold a password."""
    given = {"database": database, "keep_days": keep_days, "archive": archive}
    return json.dumps(given).encode()


def run(given: bytes) -> dict[str, Any] | None:
    """Prune; returns what went, or None where another worker of the proxy is at it."""
    asked = json.loads(given)
    before = datetime.now(UTC) - timedelta(days=asked["keep_days"])
    archive = None if asked["archive"] is None else Path(asked["archive"])
    with suppress(BusyPruningError):
        return asyncio.run(prune(asked["database"], before, archive)).as_dict()
    return None


if __name__ == "__main__":
    os.nice(NICE)
    try:
        print(json.dumps(run(sys.stdin.buffer.read())))
    except MessplusError as error:
        sys.exit(str(error))
