"""Which calls the calibration is of, and in what order."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from litellm_messplus.figures.figure import Plain
from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.status.build import read_status
from litellm_messplus.status.calibration import JudgedCall
from litellm_messplus.status.reading import judged_calls
from litellm_messplus.store.database import create_engine
from tests.status.conftest import read
from tests.support.history import PREDICTED, History, migrated
from tests.support.seeded import CANDIDATES, LARGEST, SMALL, ZOO, Case, add

Change = Callable[[History], None]


class InOrder(History):
    """Each request with its calls and verdicts, one request after the other, as traffic has it."""

    def records(self) -> list[Record]:
        found: list[Record] = []
        for request in self.requests:
            own = request.request_id
            found.append(request)
            found += [call for call in self.calls if call.request_id == own]
            found += [label for label in self.labels if label.request_id == own]
        return found


def found(
    path: Path, *cases: Case, count: int = 100, warm_up: int = 10, change: Change | None = None
) -> list[JudgedCall]:
    history = InOrder()
    for case in cases:
        add(history, case)
    if change is not None:
        change(history)
    migrated(path / "a.db", history)

    async def ask() -> list[JudgedCall]:
        engine = create_engine(f"sqlite+aiosqlite:///{path}/a.db")
        try:
            async with engine.connect() as connection:
                return [call async for call in judged_calls(connection, count, warm_up)]
        finally:
            await engine.dispose()

    return asyncio.run(ask())


def test_a_judged_call_has_what_was_predicted_of_its_candidate(tmp_path: Path) -> None:
    served, explored = found(tmp_path, Case(LARGEST, (0.25,), explored={SMALL: 1.0}))

    assert (served.zoo, served.candidate, served.satisfaction) == (ZOO, LARGEST, 0.25)
    assert (served.predicted, explored.predicted) == (PREDICTED[LARGEST], PREDICTED[SMALL])
    assert (explored.candidate, explored.satisfaction) == (SMALL, 1.0)
    assert served.decided_at == explored.decided_at == 1  # then two calls, then two verdicts
    assert (served.known_at, explored.known_at) == (4, 5)


def test_the_newest_verdict_counts_at_its_own_place(tmp_path: Path) -> None:
    (call,) = found(tmp_path, Case(SMALL, (1.0, 0.5, 0.0)))

    assert (call.satisfaction, call.known_at) == (0.0, 5)


def test_calls_come_in_the_order_of_their_decisions(tmp_path: Path) -> None:
    calls = found(tmp_path, *[Case(name, (1.0,)) for name in CANDIDATES * 40], count=1000)

    assert len(calls) == 120
    assert [call.decided_at for call in calls] == list(range(1, 361, 3))


def test_only_so_many_are_read_and_the_oldest_of_those_only_teach(tmp_path: Path) -> None:
    calls = found(tmp_path, *[Case(SMALL, (1.0,))] * 30, count=12, warm_up=5)

    assert [call.decided_at for call in calls] == list(range(40, 91, 3))
    assert [call.is_scored for call in calls] == [False] * 5 + [True] * 12


def test_all_count_where_the_log_is_short(tmp_path: Path) -> None:
    calls = found(tmp_path, *[Case(SMALL, (1.0,))] * 12, count=12, warm_up=5)

    assert [call.is_scored for call in calls] == [True] * 12


def test_what_was_not_predicted_or_not_judged_is_left_out(tmp_path: Path) -> None:
    def change(history: History) -> None:
        history.calls[3] = replace(history.calls[3], status=CallStatus.FAILURE)
        estimates = {LARGEST: 0.9}
        history.requests[4] = replace(history.requests[4], estimated_satisfaction=estimates)
        history.calls[5] = replace(history.calls[5], is_cache_hit=True)

    cases = (
        Case(SMALL, (1.0,)),
        Case(SMALL),
        Case(None, (1.0,)),  # a fallback outside the zoo
        Case(SMALL, (1.0,)),  # failed
        Case(SMALL, (1.0,)),  # was not healthy, so nothing was predicted of it
        Case(SMALL, (1.0,)),  # the cache repeated an answer, which was judged when it was new
    )

    calls = found(tmp_path, *cases, change=change)

    assert [call.decided_at for call in calls] == [1]


def test_the_status_has_it(tmp_path: Path) -> None:
    found(tmp_path, *[Case(SMALL, (1.0,)), Case(LARGEST, (0.0,))] * 4)

    (calibration,) = read(tmp_path / "a.db")["calibration"]

    assert (calibration["zoo"], calibration["reading"]["calls"]) == (ZOO, 8)
    assert {
        each["candidate"]: each["bins"][0]["satisfied"] for each in calibration["candidates"]
    } == {
        SMALL: 1.0,
        LARGEST: 0.0,
    }


def test_calibration_is_left_out_if_nobody_asks(seeded_log: Path, status: Plain) -> None:
    """Alerts and metrics look every minute, and nothing else in them may differ."""

    async def ask() -> Plain:
        engine = create_engine(f"sqlite+aiosqlite:///{seeded_log}")
        try:
            return await read_status(engine, status["window"], with_calibration=False)
        finally:
            await engine.dispose()

    assert status["calibration"]
    assert asyncio.run(ask()) == status | {"calibration": []}
