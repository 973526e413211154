"""Pruning of old requests once a day, if the settings limit how long requests are kept."""

import asyncio
import json
import sys
from typing import Any

from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.upkeep import prune

FIRST_SECONDS = 30.0
"""Seconds from the start to the first pruning, to leave the start to other work."""
DAY_SECONDS = 86_400.0
COMMAND = (sys.executable, "-m", prune.__name__)


class Retention:
    """The pruning of old requests, in a separate process. Each worker of the proxy tries; all but
    the first find nothing to do."""

    def __init__(self, settings: MessplusSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters

    def start(self, periodic: Periodic) -> None:
        """Begin in the running event loop, if retention is configured. A pruning that a stop
        interrupts is finished by the next one."""
        if self._settings.retention is not None:
            failed = "the log was not pruned"
            periodic.every(
                DAY_SECONDS, self.look, "retention_failures", failed, first=FIRST_SECONDS
            )

    async def look(self) -> None:
        """Prune what is old enough now. Raises OSError or ValueError if no process could."""
        settings = self._settings.retention
        if settings is None:
            return
        given = prune.task(self._settings.database, settings.keep_days, settings.archive)
        status, output, reason = await _ran(given)
        if status != 0:
            last = (reason.strip().splitlines() or ["no reason was given"])[-1]
            self._counters.failure("retention_failures", f"the log was not pruned: {last}")
            return
        pruned = json.loads(output)
        if pruned is not None:
            self._counters.add("retention_runs")
            _tell(pruned)


async def _ran(given: bytes) -> tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        output, reason = await process.communicate(given)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, output.decode(), reason.decode(errors="replace")


def _tell(pruned: dict[str, Any]) -> None:
    if pruned["rows"].get("requests"):
        logger.info("pruned %d requests of before %s", pruned["rows"]["requests"], pruned["before"])
    for zoo, position in pruned["held"].items():
        logger.warning(
            "older requests of %s stay in the log, for its newest snapshot is at %d: a proxy takes "
            "one every 10,000 records, and when it stops",
            *(zoo, position),
        )
