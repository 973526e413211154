"""Running what clients wrote: patterns and schemas, which can be made to take for ever.

Python neither interrupts a pattern that backtracks nor lets another thread run meanwhile, so such
work has a process of its own, which the system kills when its time is up.
"""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any

from litellm_messplus.labels.checks.check import CheckTimeoutError

WORKER = "litellm_messplus.labels.checks.worker"
CPU_SECONDS = 1.0
"""For a task: a pattern or schema that is meant well takes milliseconds."""
PATIENCE_SECONDS = 30.0
"""Until the worker says something, on a machine that may be busy."""


class SandboxError(Exception):
    """A task failed in the worker, or the worker itself did."""


class Sandbox:
    """One worker process, started when it is first needed; tasks wait for each other."""

    def __init__(self, cpu_seconds: float = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def run(self, function: str, *arguments: Any) -> Any:
        """Run a function of the worker's, on arguments and with a result that JSON can carry.

        Raises CheckTimeoutError when the time is up, and SandboxError.
        """
        task = json.dumps([function, self._cpu_seconds, arguments])
        async with self._turn:
            try:
                succeeded, result = await self._ask(task)
            except BaseException:  # it may still be at it: the next task gets another worker
                await self.close()
                raise
        if not succeeded:
            raise SandboxError(f"{function}: {result}")
        return result

    async def close(self) -> None:
        """End the worker, whatever it is at."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # which closes its pipes, too

    async def _ask(self, task: str) -> Any:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", WORKER, stdin=PIPE, stdout=PIPE
            )
            await _said(self._process)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{task}\n".encode())
        return await _said(self._process)


async def _said(process: Process) -> Any:
    """Return the worker's next line."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
            status = None if line else await process.wait()
    except TimeoutError:
        raise CheckTimeoutError("the worker says nothing") from None
    if status == -signal.SIGPROF:
        raise CheckTimeoutError("the worker's time was up")
    if status is not None:
        raise SandboxError(f"the worker ended with status {status}")
    return json.loads(line)
