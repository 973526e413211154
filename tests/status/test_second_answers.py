"""The forecast of reading answers: what it would save, and what it would add in latency."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core import snapshot
from litellm_messplus.core.answer_heads import LIKENESS, Spread
from litellm_messplus.records import Record
from litellm_messplus.status.build import read_status
from litellm_messplus.status.second_answers import (
    Expected,
    SecondAnswers,
    read_second_answers,
    second_answers,
)
from litellm_messplus.status.switches import SECOND_ANSWERS, in_words, switch_lines
from litellm_messplus.store import log, snapshots, zoo_modes
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import Arm
from tests.support.answers_read import teach
from tests.support.builders import (
    LARGE,
    NOW,
    SMALL,
    adaptive_of,
    build_engine,
    request,
    served_call,
)

REQUESTS = 200
SHOWS = np.array([-4.0, -4.0, -4.0, *np.linspace(0.5, 1.0, 7)])
"""Shifts in log-odds: three answers of ten look bad."""


def spread(shows: Sequence[float]) -> Spread:
    """The answers of the first model show something, those of the second nothing."""
    scores = np.array([shows, np.zeros(10)])
    return Spread(scores, np.full((2, 2), LIKENESS), np.zeros(1), np.array([20.0]))


def expected(share: float = 1.0, seconds: tuple[float, float] = (0.5, 2.0)) -> Expected:
    """The small model satisfies seven of ten, the large one 19 of 20 for ten times the cost."""
    rates, costs = np.tile([0.7, 0.95], (REQUESTS, 1)), np.tile([1.0, 10.0], (REQUESTS, 1))
    may_go_on = np.arange(REQUESTS) < share * REQUESTS
    return Expected(rates, costs, may_go_on, np.array(seconds))


def test_answers_that_show_nothing_change_nothing() -> None:
    found = second_answers(expected(), 0.9, spread([0.0] * 10))
    assert found == SecondAnswers(REQUESTS, 0.0, found.without, found.without, 0.0)
    assert found.without == pytest.approx(0.2 * 1.0 + 0.8 * 10.0)  # the mix that holds alpha


def test_the_bad_ones_are_replaced_and_their_requests_take_as_long_as_two_calls() -> None:
    found = second_answers(expected(), 0.9, spread(SHOWS.tolist()))
    assert found.replaced == pytest.approx(0.3)
    assert found.cost < 0.7 * found.without
    assert found.seconds == pytest.approx(0.3 * 2.0)


def test_only_requests_that_may_go_on_count() -> None:
    every, half, none = (
        second_answers(expected(share), 0.9, spread(SHOWS.tolist())) for share in (1.0, 0.5, 0.0)
    )
    assert half.replaced == pytest.approx(every.replaced / 2)
    assert every.cost < half.cost < none.cost
    assert (none.replaced, none.cost, none.seconds) == (0.0, none.without, 0.0)


def test_an_alpha_that_no_model_holds_is_compared_at_the_best_rate() -> None:
    found = second_answers(expected(), 0.99, spread(SHOWS.tolist()))
    assert (found.cost, found.without) == pytest.approx((10.0, 10.0))


def test_a_model_whose_durations_are_unknown_leaves_the_latency_unknown() -> None:
    found = second_answers(expected(seconds=(0.5, np.nan)), 0.9, spread(SHOWS.tolist()))
    assert found.seconds is None
    assert "add a time not known yet" in in_words(SECOND_ANSWERS, asdict(found))


# From the log.


ROW = ModeRow("zoo", 1, "watch", 0.1, LARGE, "file", "as configured", NOW, "f" * 16)


def taught() -> bytes:
    """The state of an engine that learned that refusals of the small model do not satisfy."""
    engine = build_engine()
    teach(adaptive_of(engine.state).predictor, [SMALL, LARGE])
    return snapshot.dump(engine.state)


async def write(database: AsyncEngine, **changed: Any) -> None:
    """A watched zoo: the large model serves, and the small one was called unseen."""
    records: list[Record] = []
    for number in range(1, 101):
        name = f"r{number}"
        given: dict[str, Any] = {
            "service_level": "default:before",
            "arm": Arm.BEFORE,
            "alpha": 0.9,
            "expected_t": number,
            "would_choose": LARGE,
            "would_cost": 5.0,
            "estimated_satisfaction": {SMALL: 0.65, LARGE: 0.95},
        }
        decided = request(name, **given | changed)
        records += [decided, served_call(name, seconds=2.0)]
    await zoo_modes.append(database, ROW)
    await log.append(database, records)
    await snapshots.save(database, snapshots.Snapshot("zoo", 200, "f" * 64, taught()))


async def read(database: AsyncEngine) -> SecondAnswers | None:
    async with database.connect() as connection:
        return await read_second_answers(connection, "zoo")


async def test_a_watched_zoo_says_what_reading_would_save_and_add(database: AsyncEngine) -> None:
    await write(database)
    status = await read_status(database)

    (switch,) = status["switches"]
    found = await read(database)
    assert found is not None
    assert switch["second_answers"] == asdict(found)
    assert found.requests == 100
    assert 0.1 < found.replaced < 0.6
    assert found.cost < found.without
    assert found.seconds == pytest.approx(2.0 * found.replaced)
    (line,) = switch_lines(status["switches"])
    assert line.endswith(f"; {in_words(SECOND_ANSWERS, asdict(found))}")


@pytest.mark.parametrize("changed", [{"is_stream": True}, {"is_alone": True}])
async def test_streams_and_effects_stay(database: AsyncEngine, changed: dict[str, Any]) -> None:
    await write(database, **changed)
    found = await read(database)
    assert found is not None
    assert (found.replaced, found.cost) == (0.0, found.without)


async def test_without_a_state_there_is_no_forecast(database: AsyncEngine) -> None:
    await zoo_modes.append(database, ROW)
    await log.append(database, [request("r1"), served_call("r1", ended_at=NOW + timedelta(0))])
    assert await read(database) is None
