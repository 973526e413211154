"""The keeper of a worker: it starts a learner when the database has none that gives signs of life.

Every worker has one. The lease decides between processes that start at once: the others end.
"""

import asyncio
import json
import logging
import pickle
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from litellm_messplus.learning.process import LearnerSettings
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError, MessplusError
from litellm_messplus.runtime.tasks import Periodic

logger = logging.getLogger("litellm_messplus")

LOOK_SECONDS = 1.0
SILENT_SECONDS = 3.0
"""Seconds without a sign of life after which a worker starts a learner."""
START_SECONDS = 600.0
"""The longest wait for a started learner's first word: it may fold a long log."""
CLOSE_SECONDS = 10.0


class LearnerGoneError(MessplusError):
    """The process ended before it was ready."""


class Keeper:
    """The process of the learner that this worker started, if any; ``silent_seconds`` returns the
    time since the last sign of life of any learner."""

    def __init__(self, settings: LearnerSettings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._silent_seconds: Callable[[], float] = lambda: 0.0

    @property
    def process_id(self) -> int | None:
        """The id of the process started last, while it runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def begin(self) -> bool:
        """Start a learner, and wait until it is ready; return False if another one is in office.

        Raises ConfigurationError if it cannot learn with these settings, DatabaseAwayError if the
        database does not answer, and LearnerGoneError if the process ends.
        """
        process = subprocess.Popen(
            [sys.executable, "-m", "litellm_messplus.learning.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the worker's, which closes the learner last
        )
        self._process = process
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            pickle.dump(self._settings, process.stdin)
            process.stdin.flush()
        said = _first_line(process)
        match said.get("outcome"):
            case "ready":
                return True
            case "taken":
                process.wait()
                return False
            case "refused":
                process.wait()
                kind = DatabaseAwayError if said["is_away"] else ConfigurationError
                raise kind(*said["error"])
            case _:
                process.kill()
                raise LearnerGoneError(f"the learner ended with status {process.wait()}")

    def start(self, periodic: Periodic, silent_seconds: Callable[[], float]) -> None:
        """Begin to watch, in the running event loop."""
        self._silent_seconds = silent_seconds
        failed = "no learner could be started: requests are decided from the last state"
        periodic.every(LOOK_SECONDS, self._look, "learner_starts_failed", failed)

    async def close(self) -> None:
        """Let the learner move what is in the inbox, save its state, and end."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            await asyncio.to_thread(process.wait, CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            logger.error("the learner did not end: it is killed, and its state is in the log")
            process.kill()
            process.wait()

    async def _look(self) -> None:
        if self.process_id is not None or self._silent_seconds() < SILENT_SECONDS:
            return
        if await asyncio.to_thread(self.begin):
            logger.warning("a new learner is in office")


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Read the first word of a process; empty if it ended, or said nothing in time."""
    assert process.stdout is not None
    ends, line = time.monotonic() + START_SECONDS, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(ends - time.monotonic(), 0.0)):
                return {}
            part = process.stdout.read1(4096)  # type: ignore[attr-defined]
            if not part:
                return {}
            line += part
    found: dict[str, Any] = json.loads(line)
    return found
