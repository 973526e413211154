"""The keeper: real processes of the brain, started, replaced and ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from subprocess import Popen

import pytest

from litellm_messplus.brain import keeper as module
from litellm_messplus.brain.keeper import BrainGoneError, Keeper, launch
from litellm_messplus.brain.place import BrainSettings
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError, MessplusError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.serving.link import reach
from tests.support.apart import Apart
from tests.support.patience import until_it_holds
from tests.support.processes import is_running

MOST_MEMORY = 150 * 1024
"""The most memory that a brain with the embedded encoder has had once it is ready, in KiB."""


@pytest.fixture
def given(tmp_path: Path) -> BrainSettings:
    return Apart(tmp_path).given


def pid_of(keeper: Keeper) -> int:
    assert keeper.process_id is not None
    return keeper.process_id


@asynccontextmanager
async def kept(given: BrainSettings, launched: Popen[bytes] | None = None) -> AsyncIterator[Keeper]:
    """A keeper that has started nothing but what was launched; what it has is ended."""
    keeper = Keeper(given, launched)
    try:
        yield keeper
    finally:
        await keeper.close()


async def begin(keeper: Keeper) -> bool:
    return await asyncio.to_thread(keeper.begin)


def peak_memory(process_id: int) -> int:
    """The most memory that a process has had, in KiB."""
    status = Path(f"/proc/{process_id}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


async def test_it_listens_until_closed(given: BrainSettings) -> None:
    async with kept(given) as keeper:
        assert await begin(keeper)
        process = pid_of(keeper)
        assert peak_memory(process) < MOST_MEMORY
        assert await reach(given, 0.0) == 0
        await keeper.close()
        assert not is_running(process)
        assert await reach(given, 0.0) is None


async def test_nobody_else_may_connect(given: BrainSettings) -> None:
    async with kept(given) as keeper:
        assert await begin(keeper)
        assert isinstance(given.address, Path)
        assert given.address.stat().st_mode & 0o777 == 0o600


async def test_the_next_waits_for_the_first(given: BrainSettings) -> None:
    async with kept(given) as here, kept(given) as there:
        assert [await begin(here), await begin(there)] == [True, False]
        assert there.process_id is None
        os.kill(pid_of(here), signal.SIGKILL)
        await until_it_holds(lambda: here.process_id is None)
        while not await begin(there):
            pass
        assert await reach(given, 0.0) == 0


async def test_a_start_tried_again_keeps_it(given: BrainSettings) -> None:
    launched = launch()
    async with kept(given, launched) as keeper:
        assert [await begin(keeper), await begin(keeper)] == [True, True]
        assert pid_of(keeper) == launched.pid


async def test_launched_in_vain_it_ends(given: BrainSettings) -> None:
    """The worker's start ended before it sent its settings."""
    process = launch()
    await Keeper(given, process).close()
    assert process.returncode == 0


async def test_of_starts_that_race_one_wins(given: BrainSettings) -> None:
    keepers = [Keeper(given) for _ in range(3)]
    try:
        assert sorted(await asyncio.gather(*map(begin, keepers))) == [False, False, True]
    finally:
        for keeper in keepers:
            await keeper.close()


async def test_it_ends_with_its_worker(given: BrainSettings) -> None:
    """A killed worker's end of the standard input is closed."""
    async with kept(given) as keeper:
        assert await begin(keeper)
        process = keeper._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        await until_it_holds(lambda: keeper.process_id is None)


async def test_a_database_that_is_away_is_distinguished(given: BrainSettings) -> None:
    url = "postgresql+asyncpg://nobody:password@127.0.0.1:1/nowhere"
    settings = given.settings.model_copy(update={"database": url})
    async with kept(replace(given, settings=settings)) as keeper:
        with pytest.raises(DatabaseAwayError) as raised:
            await begin(keeper)
        assert "password" not in str(raised.value)


async def test_a_wrong_encoder_is_refused(given: BrainSettings) -> None:
    settings = given.settings.model_copy(update={"encoder": "no.such:thing"})
    async with kept(replace(given, settings=settings)) as keeper:
        with pytest.raises(ConfigurationError, match=r"no\.such:thing"):
            await begin(keeper)


async def test_any_other_error_is_one_line(given: BrainSettings) -> None:
    async with kept(replace(given, address=Path("/nowhere/socket"))) as keeper:
        with pytest.raises(MessplusError, match=r"FileNotFoundError at .*: "):
            await begin(keeper)


@pytest.mark.parametrize(
    "does",
    ["", "sleep 600", *(f"echo '{word}'; sleep 600" for word in ("no json", '"taken"', "{}"))],
)
async def test_without_a_word_it_is_gone(
    given: BrainSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str
) -> None:
    if does == "sleep 600":
        monkeypatch.setattr(module, "START_SECONDS", 0.05)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n".replace("sleep", "exec sleep"))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    async with kept(given) as keeper:
        with pytest.raises(BrainGoneError):
            await begin(keeper)
        assert keeper.process_id is None


async def test_one_that_does_not_end_is_killed(
    given: BrainSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    async with kept(given) as keeper:
        assert await begin(keeper)
        process = pid_of(keeper)
        os.kill(process, signal.SIGSTOP)
        await keeper.close()
        assert not is_running(process)


# The watch over it


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.5)


@pytest.mark.usefixtures("quick")
async def test_a_killed_one_is_replaced(given: BrainSettings) -> None:
    periodic = Periodic(Counters())
    async with kept(given) as keeper:
        assert await begin(keeper)
        killed = pid_of(keeper)
        keeper.start(periodic, lambda: False)
        os.kill(killed, signal.SIGKILL)
        await until_it_holds(lambda: keeper.process_id not in {None, killed})
        assert await reach(given, 30.0) == 0
        await periodic.close()


@pytest.mark.usefixtures("quick")
async def test_starts_in_vain_become_rare(
    given: BrainSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a second of a core; a brain that is stopped keeps its lease."""
    keeper, starts = Keeper(given), list[float]()
    connected, clock = [False], asyncio.get_running_loop().time

    def in_vain() -> bool:
        starts.append(clock())
        if len(starts) % 2:
            raise BrainGoneError("it ended")
        return False

    monkeypatch.setattr(keeper, "begin", in_vain)
    counters = Counters()
    periodic = Periodic(counters)
    keeper._pause = module.LOOK_SECONDS
    keeper.start(periodic, lambda: connected[0])
    await until_it_holds(lambda: len(starts) == 8)
    pauses = [later - earlier for earlier, later in pairwise(starts[:8])]
    least = [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]
    assert all(pause > 0.9 * each for pause, each in zip(pauses, least, strict=True))
    assert counters.as_dict() == {"brain_starts_failed": 4}

    connected[0] = True
    await until_it_holds(lambda: keeper._pause == module.LOOK_SECONDS)
    connected[0] = False
    await until_it_holds(lambda: len(starts) >= 10)
    await periodic.close()
