"""What clients wrote runs in a process of its own, and can neither hang nor break the proxy."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from litellm_messplus.labels.checks.check import WORKER, CheckTimeoutError, Sandbox, SandboxError
from tests.support.checking import GARBAGE
from tests.support.patience import turns

HANGS = ({"match": "regex", "value": "^(a+)+$"}, "a" * 60 + "!")
FINE = ({"match": "exact", "value": "x"}, "x")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(cpu_seconds=0.3)
    yield made
    await made.close()


async def test_a_pattern_that_never_ends_is_given_up_while_the_loop_goes_on(
    sandbox: Sandbox,
) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    await sandbox.run("matches", *FINE)
    counting = asyncio.create_task(count())
    with pytest.raises(CheckTimeoutError):
        await sandbox.run("matches", *HANGS)
    counting.cancel()

    assert turns > 10
    assert await sandbox.run("matches", *FINE) is True


async def test_tasks_take_turns(sandbox: Sandbox) -> None:
    tasks = [
        sandbox.run("matches", {"match": "exact", "value": str(i % 2)}, "1") for i in range(50)
    ]

    assert await asyncio.gather(*tasks) == [bool(i % 2) for i in range(50)]


async def test_a_cancelled_task_leaves_no_result_to_the_next(sandbox: Sandbox) -> None:
    await sandbox.run("matches", *FINE)
    cancelled = asyncio.create_task(sandbox.run("matches", *HANGS))
    await turns()
    cancelled.cancel()

    assert await sandbox.run("matches", *FINE) is True


async def test_a_worker_that_dies_is_replaced(sandbox: Sandbox) -> None:
    await sandbox.run("matches", *FINE)
    process = sandbox._process
    assert process is not None
    process.kill()

    with pytest.raises((SandboxError, ConnectionError)):
        await sandbox.run("matches", *FINE)
    assert await sandbox.run("matches", *FINE) is True


async def test_a_task_that_fails_is_named_and_not_quoted(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="matches: KeyError"):
        await sandbox.run("matches", {"match": "secret"}, "x")
    assert await sandbox.run("matches", *FINE) is True


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:8]))
async def test_a_pipe_carries_any_text(sandbox: Sandbox, text: str) -> None:
    assert await sandbox.run("matches", {"match": "exact", "value": text}, text) is True


async def test_closing_twice_is_closing_once(sandbox: Sandbox) -> None:
    await sandbox.close()
    await sandbox.run("matches", *FINE)
    await sandbox.close()
    await sandbox.close()


def test_a_worker_whose_proxy_was_killed_ends_by_itself() -> None:
    """At the end of its input, and also where it is at a pattern that never ends."""
    task = json.dumps(["matches", 0.1, HANGS])
    worker = [sys.executable, "-m", WORKER]

    idle = subprocess.run(worker, input="", capture_output=True, text=True, check=False)
    busy = subprocess.run(worker, input=f"{task}\n", capture_output=True, text=True, check=False)

    assert (idle.returncode, idle.stdout) == (0, '[true, "ready"]\n')
    assert busy.returncode < 0
