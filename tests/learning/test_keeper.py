"""The keeper: real processes of the learner, started, replaced and ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning import keeper as module
from litellm_messplus.learning.keeper import Keeper, LearnerGoneError, launch
from litellm_messplus.learning.process import KnownEncoder, LearnerSettings
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import DatabaseAwayError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.store import inbox, log
from litellm_messplus.upkeep.verify import verify
from tests.support.builders import (
    PairEncoder,
    build_zoo,
    label,
    request,
    served_call,
    traffic,
)
from tests.support.learning import Worker, counts, put
from tests.support.patience import PATIENT, until_it_holds
from tests.support.processes import is_running

MOST_MEMORY = 130 * 1024
"""The most memory that a learner has had once it is ready, in KiB: without LiteLLM and without an
encoder it has 85,000."""


def settings_of(url: str, **changed: Any) -> LearnerSettings:
    encoder = KnownEncoder(PairEncoder.name, PairEncoder.dimension, PairEncoder.is_fast)
    return LearnerSettings(url, {"zoo": build_zoo(**changed)}, encoder, seed=0)


def pid_of(keeper: Keeper) -> int:
    assert keeper.process_id is not None
    return keeper.process_id


@asynccontextmanager
async def kept(
    url: str, launched: Popen[bytes] | None = None, **changed: Any
) -> AsyncIterator[Keeper]:
    """A keeper that has started nothing but what was launched; what it has is ended."""
    keeper = Keeper(settings_of(url, **changed), launched)
    try:
        yield keeper
    finally:
        await keeper.close()


async def begin(keeper: Keeper) -> bool:
    return await asyncio.to_thread(keeper.begin)


async def what_is_wrong(database: AsyncEngine) -> tuple[str, ...]:
    """What `messplus verify` finds."""
    return (await verify(database.url.render_as_string(hide_password=False))).faults


def peak_memory(process_id: int) -> int:
    """The most memory that a process has had, in KiB."""
    status = Path(f"/proc/{process_id}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


async def test_it_learns_until_closed_and_inbox_empty(either: AsyncEngine, either_url: str) -> None:
    worker = Worker(either)
    async with kept(either_url) as keeper:
        assert await begin(keeper)
        process = pid_of(keeper)
        assert peak_memory(process) < MOST_MEMORY
        async with worker.running():
            await worker.write(*traffic(30))
            await worker.journal.write_durably(label("r1", label_id="last"))
            assert await worker.is_the_fold()
        await put(either, "b", 1, request("late"), served_call("late"))
        await keeper.close()
        assert not is_running(process)
        assert keeper.process_id is None
    assert await counts(either) == (0, len(traffic(30)) + 3)
    assert await what_is_wrong(either) == ()


async def test_the_next_learner_waits_for_the_first(either: AsyncEngine, either_url: str) -> None:
    async with kept(either_url) as here, kept(either_url) as there:
        assert [await begin(here), await begin(there)] == [True, False]
        assert there.process_id is None
        os.kill(pid_of(here), signal.SIGKILL)
        await until_it_holds(lambda: here.process_id is None)
        await put(either, "a", 1, request())
        while not await begin(there):
            pass
        await until_logged(either, 1)


async def test_a_start_tried_again_keeps_it(database: AsyncEngine, database_url: str) -> None:
    """The database went away after it was ready."""
    launched = launch()
    async with kept(database_url, launched=launched) as keeper:
        process = launched.pid
        assert [await begin(keeper), await begin(keeper)] == [True, True]
        assert pid_of(keeper) == process


async def test_a_process_that_was_launched_in_vain_ends(database_url: str) -> None:
    """The worker's start ended before it sent what to learn."""
    process = launch()
    await Keeper(settings_of(database_url), process).close()
    assert process.returncode == 0


async def until_logged(database: AsyncEngine, count: int) -> None:
    async with asyncio.timeout(PATIENT):
        while await counts(database) != (0, count):  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.02)


async def test_starts_that_race_bring_one_into_office(either: AsyncEngine, either_url: str) -> None:
    keepers = [Keeper(settings_of(either_url)) for _ in range(3)]
    try:
        assert sorted(await asyncio.gather(*map(begin, keepers))) == [False, False, True]
    finally:
        for keeper in keepers:
            await keeper.close()


async def test_a_learner_whose_worker_is_killed_moves_what_is_left_and_ends(
    either: AsyncEngine, either_url: str
) -> None:
    """Its standard input is closed then."""
    async with kept(either_url) as keeper:
        assert await begin(keeper)
        process = keeper._process
        assert process is not None
        assert process.stdin is not None
        await put(either, "a", 1, request())
        process.stdin.close()
        await until_it_holds(lambda: keeper.process_id is None)
    assert await counts(either) == (0, 1)


async def test_a_database_that_is_away_is_distinguished(tmp_path: Path) -> None:
    """And no empty one is made in its place."""
    missing = tmp_path / "messplus.db"
    for url in (
        f"sqlite+aiosqlite:///{missing}",
        "postgresql+asyncpg://nobody:password@127.0.0.1:1/nowhere",
    ):
        async with kept(url) as keeper:
            with pytest.raises(DatabaseAwayError) as raised:
                await begin(keeper)
            assert "password" not in str(raised.value)
    assert not missing.exists()


@pytest.mark.parametrize(
    "does",
    ["", "sleep 600", *(f"echo '{word}'; sleep 600" for word in ("no json", '"taken"', "{}"))],
)
async def test_a_process_that_ends_says_nothing_in_time_or_something_else_is_gone(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str
) -> None:
    if does == "sleep 600":
        monkeypatch.setattr(module, "START_SECONDS", 0.05)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n".replace("sleep", "exec sleep"))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    async with kept(database_url) as keeper:
        with pytest.raises(LearnerGoneError):
            await begin(keeper)
        assert keeper.process_id is None


async def test_a_learner_that_does_not_end_is_killed(
    either: AsyncEngine, either_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    async with kept(either_url) as keeper:
        assert await begin(keeper)
        process = pid_of(keeper)
        os.kill(process, signal.SIGSTOP)
        await put(either, "a", 1, request())
        await keeper.close()
        assert not is_running(process)
    assert await counts(either) == (1, 0)


# The watch over it


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.5)


@pytest.mark.usefixtures("quick")
async def test_a_learner_that_is_killed_is_replaced_and_nothing_is_lost(
    either: AsyncEngine, either_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.3)
    worker, periodic = Worker(either), Periodic(Counters())
    async with kept(either_url) as keeper, worker.running():
        assert await begin(keeper)
        keeper.start(periodic, lambda: worker.spool.state_seconds)
        killed = set()
        for number in range(3):
            await worker.write(request(f"r{number}"), served_call(f"r{number}"))
            process = pid_of(keeper)
            killed.add(process)
            os.kill(process, signal.SIGKILL)
            await worker.journal.write_durably(label(f"r{number}"))
            await until_it_holds(lambda: keeper.process_id not in {None, *killed})
        await until_logged(either, 9)
        await worker.reached(9)
        assert await worker.is_the_fold()
        await periodic.close()
    assert len(killed) == 3
    assert await what_is_wrong(either) == ()


@pytest.mark.usefixtures("quick")
async def test_starts_in_vain_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes half a second of a core; a learner that is stopped keeps its lease."""
    keeper, starts = Keeper(settings_of("sqlite+aiosqlite:///nowhere.db")), list[float]()
    silent, clock = [99.0], asyncio.get_running_loop().time

    def in_vain() -> bool:
        starts.append(clock())
        if len(starts) % 2:
            raise LearnerGoneError("it ended")
        return False

    monkeypatch.setattr(keeper, "begin", in_vain)
    counters = Counters()
    periodic = Periodic(counters)
    keeper._pause = module.LOOK_SECONDS
    keeper.start(periodic, lambda: silent[0])
    await until_it_holds(lambda: len(starts) == 8)
    pauses = [later - earlier for earlier, later in pairwise(starts[:8])]
    least = [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]
    assert all(pause > 0.9 * each for pause, each in zip(pauses, least, strict=True))
    assert counters.as_dict() == {"learner_starts_failed": 4}

    silent[0] = 0.0  # a learner gave a sign of life
    await until_it_holds(lambda: keeper._pause == module.LOOK_SECONDS)
    silent[0] = module.SILENT_SECONDS
    await until_it_holds(lambda: len(starts) >= 10)
    await periodic.close()


async def test_another_start_goes_on_from_a_snapshot(either: AsyncEngine, either_url: str) -> None:
    """And each learner has the next epoch."""
    for number in (1, 2):
        async with kept(either_url) as keeper:
            assert await begin(keeper)
            await put(either, "a", number, *traffic(5, prefix=f"{number}-"))
    assert await inbox.elect(either, "a process", datetime.now(UTC)) == 3
    assert await log.head(either) == len(traffic(5, prefix="1-")) + len(traffic(5, prefix="2-"))
    assert await what_is_wrong(either) == ()
