"""The lease: one process of all has it, until it ends."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.lease import lease_of
from tests.support.patience import PATIENT

HOLDS = """
import asyncio, sys
from litellm_messplus.brain.lease import lease_of
from litellm_messplus.store.database import create_engine

async def hold():
    lease = lease_of(create_engine(sys.argv[1]))
    print(await lease.take(), flush=True)
    await asyncio.sleep(3600)

asyncio.run(hold())
"""


async def test_one_of_two_gets_it_then_the_other(either: AsyncEngine) -> None:
    one, two = lease_of(either), lease_of(either)
    assert [await one.take(), await two.take(), await one.take()] == [True, False, True]
    await two.release()  # it has none
    assert not await two.take()
    await one.release()
    await one.release()
    assert [await two.take(), await one.take()] == [True, False]
    await two.release()


@pytest.fixture
def other(either: AsyncEngine, either_url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, either_url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
async def test_it_ends_with_the_process_however_that_ends(
    either: AsyncEngine, other: subprocess.Popen[str], sign: signal.Signals
) -> None:
    lease = lease_of(either)
    assert not await lease.take()
    other.send_signal(signal.SIGSTOP)
    assert not await lease.take()  # stopped is not ended
    other.send_signal(signal.SIGCONT)
    other.send_signal(sign)
    other.wait(PATIENT)
    async with asyncio.timeout(PATIENT):
        while not await lease.take():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    await lease.release()
