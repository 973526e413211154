"""How long tests wait for what comes in its own time: a thread, a process, a database.

A wait ends with what it waits for. The patience only ends a test that hangs, so however busy the
machine is, it changes no result.
"""

import asyncio
import time
from collections.abc import Callable

PATIENT = 600.0
"""Seconds that anything may take, a decision of the proxy and the start of one included."""
LOOK_SECONDS = 0.02


def until(holds: Callable[[], bool], explain: Callable[[], str] = lambda: "") -> None:
    """Wait until it holds; AssertionError with the explanation when the patience is over."""
    deadline = time.monotonic() + PATIENT
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not hold within {PATIENT} s\n{explain()}")
        time.sleep(LOOK_SECONDS)


async def until_it_holds(holds: Callable[[], bool]) -> None:
    """Wait, in the event loop, for what another task or thread brings about."""
    async with asyncio.timeout(PATIENT):
        while not holds():  # noqa: ASYNC110 - of what it waits for, nothing tells
            await asyncio.sleep(LOOK_SECONDS)


async def turns() -> None:
    """Let every task of the event loop run as far as it can without waiting for anything else."""
    for _ in range(20):
        await asyncio.sleep(0)
