"""The keeper of a worker: it starts a brain when the worker is connected to none.

Every worker has one. The lease decides between processes that start at once: the others end.
"""

import asyncio
import json
import pickle
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError, MessplusError
from litellm_messplus.runtime.tasks import Periodic

if TYPE_CHECKING:  # a start launches the process before it imports what both need
    from litellm_messplus.brain.place import BrainSettings


LOOK_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
"""Seconds between two starts: doubled after each that brought no brain, up to this. Each takes
a second of a core."""
START_SECONDS = 600.0
"""The longest wait for a started brain's first word: it may fold a long log."""
CLOSE_SECONDS = 10.0


class BrainGoneError(MessplusError):
    """The process ended before it was ready."""


def launch() -> subprocess.Popen[bytes]:
    """Start a process, which loads its modules until a keeper sends it its settings; it ends if
    its standard input is closed before that."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "litellm_messplus.brain.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the worker's, which closes the brain last
    )


class Keeper:
    """The process of the brain that this worker started, if any. A ``launched`` process has no
    settings yet."""

    def __init__(
        self, settings: "BrainSettings", launched: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._settings = settings
        self._process = launched
        self._is_ready = False
        self._is_connected: Callable[[], bool] = lambda: True
        self._pause = LOOK_SECONDS
        self._may_start_at = 0.0

    @property
    def process_id(self) -> int | None:
        """The id of the process started last, while it runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def begin(self) -> bool:
        """Start a brain, and wait until it is ready; return False if another one runs.

        Raises ConfigurationError if it cannot run with these settings, DatabaseAwayError if the
        database does not answer, MessplusError with another error of its start, and
        BrainGoneError if the process ends without a word.
        """
        process = self._running()
        if self._is_ready:  # since an earlier attempt to open the database
            return True
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            pickle.dump(self._settings, process.stdin)
            process.stdin.flush()
        message = _first_line(process, START_SECONDS)
        if message.get("outcome") == "ready":
            self._is_ready = True
            return True
        is_other = message.get("outcome") not in ("taken", "refused", "failed")
        if is_other:
            process.kill()
        status = process.wait()
        _close_pipes(process)
        if is_other:
            raise BrainGoneError(f"the brain ended with status {status}")
        if message["outcome"] == "failed":
            raise MessplusError(message["error"])
        if message["outcome"] == "refused":
            kind = DatabaseAwayError if message["is_away"] else ConfigurationError
            raise kind(*message["error"])
        return False

    def start(self, periodic: Periodic, is_connected: Callable[[], bool]) -> None:
        """Begin to watch, in the running event loop."""
        self._is_connected = is_connected
        failed = "no brain could be started: requests are served as before, or by the largest"
        periodic.every(LOOK_SECONDS, self._look, "brain_starts_failed", failed)

    async def close(self) -> None:
        """Let the brain write what it has, save its state, and end, or go on for other workers."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            if process is not None:
                _close_pipes(process)
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        said = await asyncio.to_thread(_first_line, process, CLOSE_SECONDS)
        if said.get("outcome") != "stays":
            try:
                await asyncio.to_thread(process.wait, CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                logger.error("the brain did not end: it is killed, and its state is in the log")
                process.kill()
                process.wait()
        _close_pipes(process)

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process, or launch another one if it has ended."""
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            _close_pipes(self._process)
        self._is_ready = False
        self._process = launch()
        return self._process

    async def _look(self) -> None:
        if self.process_id is not None or self._is_connected():
            self._pause = LOOK_SECONDS
            return
        if time.monotonic() < self._may_start_at:
            return
        try:
            is_ready = await asyncio.to_thread(self.begin)
        finally:
            self._may_start_at = time.monotonic() + self._pause
            self._pause = min(2.0 * self._pause, LONGEST_PAUSE_SECONDS)
        if is_ready:
            logger.warning("a new brain runs")


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes to a process, which ends it if it runs."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
    """Read the first message of a process; empty if it ended, or sent none in time."""
    assert process.stdout is not None
    ends, line = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(ends - time.monotonic(), 0.0)):
                return {}
            part = process.stdout.read1(4096)  # type: ignore[attr-defined]
            if not part:
                return {}
            line += part
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
