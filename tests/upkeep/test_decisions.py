"""Every logged decision can be computed again, equal to the bit, or is counted with the reason."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import Price
from litellm_messplus.records import RequestRecord
from litellm_messplus.routing.decision import Reason
from litellm_messplus.routing.plan import EVIDENCE
from litellm_messplus.store import log
from litellm_messplus.switching.modes import Arm
from litellm_messplus.upkeep import decisions as computing
from tests.support.builders import LARGE, PRICES, adaptive_of, build_engine, build_zoo, request
from tests.support.decided_log import (
    GOLD,
    LIMITS,
    TURNS_OF,
    WAYS,
    Reader,
    Script,
    Worker,
    computed,
    play,
)

ZOOS: dict[str, dict[str, Any]] = {
    "plain": {"alpha": 0.7},
    "limits": {"alpha": 0.7, **LIMITS},
    "confident": {"alpha": 0.7, "confidence": 0.95, "label_noise": 0.05},
    "conversations": {"alpha": 0.7, **TURNS_OF},
    "paper": {"alpha": 0.7, "policy": "paper", "V": 0.05, "c": 0.5},
    "second answers": {"alpha": 0.7, "second_answer": "auto"},
}


async def written(
    database: AsyncEngine,
    settings: dict[str, Any],
    requests: int = 400,
    workers: int = 3,
    *,
    is_published: bool = False,
) -> tuple[Script, list[RequestRecord]]:
    """A log of that many requests, decided by so many workers, from their own folds or from what a
    learner publishes."""
    script, deciding = Script(seed=1), list[Worker]()
    for _ in range(workers):
        engine, learner = (build_engine(build_zoo(**settings, **GOLD), seed=5) for _ in range(2))
        engine.deciders = workers
        deciding.append(
            Reader(engine, learner=learner, workers=workers) if is_published else Worker(engine)
        )
    return script, [row async for row in play(script, deciding, database, requests)]


@pytest.mark.parametrize("is_published", [False, True])
@pytest.mark.parametrize("name", ZOOS)
async def test_every_decision_is_computed_again_to_the_bit(
    name: str, is_published: bool, database: AsyncEngine
) -> None:
    script, rows = await written(database, ZOOS[name], is_published=is_published)

    found = await computed(database, ZOOS[name])

    assert found.wrong == []
    assert (found.same, found.rounded, found.left_out) == (len(rows), 0, Counter())
    assert script.ways == set(WAYS)
    texts = [finding.told for finding in found.findings()]
    assert texts == [f"{len(rows)} decisions computed again, all the same"]
    assert _reasons(rows) >= {Reason.HELD, Reason.TROUBLE, Reason.FORCED}
    assert any(row.in_flight for row in rows)
    assert (script.replaced > 0) == (name == "second answers")
    if name == "limits":
        assert {(row.limits or {}).get("binding") for row in rows} >= {None, "latency", "budget"}
    if name != "paper":  # and the plan is in force
        assert adaptive_of(found.fold.engines["zoo"].state).predictor.heads.evidence >= EVIDENCE
        assert any(row.chosen == "newest" for row in rows)


def _reasons(rows: Sequence[RequestRecord]) -> set[Reason]:
    return {row.reason for row in rows}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("price", "price + 1"),
        ("chosen", "'medium'"),
        ("propensity", "propensity / 2"),
        ("expected_satisfaction", "expected_satisfaction + 0.001"),
        ("in_flight", "in_flight + 20"),
    ],
)
async def test_a_decision_that_the_log_does_not_lead_to_is_named(
    column: str, value: str, database: AsyncEngine
) -> None:
    _, rows = await written(database, ZOOS["plain"], requests=120)
    routed = [row for row in rows[60:] if row.trial.arm is Arm.ROUTED]
    row = next(row for row in routed if row.chosen == LARGE and row.reason == Reason.BEHIND)
    async with database.begin() as connection:
        query = f"UPDATE requests SET {column} = {value} WHERE request_id = :id"
        await connection.execute(text(query), {"id": row.request_id})

    found = await computed(database, ZOOS["plain"])

    assert found.wrong[0].startswith(f"{row.request_id}: ")
    (finding,) = found.findings()
    assert "of 120 decisions computed again are not as logged" in finding.told


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("as_of = NULL", computing.EARLIER),
        ("reason = 'undecided'", computing.UNDECIDED),
        ("reason = 'deadline_missed'", computing.UNFOLLOWED),
        ("surface = NULL", computing.UNREAD),
        ("encoder = 'other'", computing.OTHER_ENCODER),
        ("service_level = 'silver'", computing.NO_LEVEL),
    ],
)
async def test_what_cannot_be_computed_again_is_counted_with_the_reason(
    change: str, reason: str, database: AsyncEngine
) -> None:
    _, rows = await written(database, ZOOS["plain"], requests=40, workers=1)
    newest = rows[-1].request_id
    async with database.begin() as connection:
        query = f"UPDATE requests SET {change} WHERE request_id = :id"
        await connection.execute(text(query), {"id": newest})

    found = await computed(database, ZOOS["plain"])

    assert (found.wrong, found.same, found.left_out) == ([], 39, Counter({reason: 1}))
    *_, finding = found.findings()
    assert finding.told == f"1 requests are not compared: 1 {reason}"


async def test_other_settings_since_are_no_fault_of_the_log(database: AsyncEngine) -> None:
    await written(database, ZOOS["plain"], requests=60)

    found = await computed(database, ZOOS["plain"], confidence=0.95)

    assert found.wrong == []
    assert found.left_out[computing.OTHER_BASIS] > 0
    assert found.left_out.total() + found.same == 60


async def test_prices_that_only_one_router_showed_are_no_fault_of_the_log(
    database: AsyncEngine,
) -> None:
    engine = build_engine(build_zoo(**ZOOS["plain"], **GOLD), seed=5)
    engine.reprice({name: Price(0.0, 7 * each.completion) for name, each in PRICES.items()})
    rows = [row async for row in play(Script(seed=1), [Worker(engine)], database, 60)]

    found = await computed(database, ZOOS["plain"])

    assert found.wrong == []
    assert found.left_out[computing.OTHER_BASIS] > 0
    assert found.left_out.total() + found.same == len(rows)


async def test_rows_that_are_gone_since_explain_a_difference(database: AsyncEngine) -> None:
    await written(database, ZOOS["plain"], requests=60)
    async with database.begin() as connection:
        await connection.execute(text("DELETE FROM labels WHERE request_id <= 'r00020'"))

    found = await computed(database, ZOOS["plain"])

    assert found.wrong == []
    assert found.left_out[computing.TAKEN_BACK] > 10


async def test_a_log_without_decisions_says_so(database: AsyncEngine) -> None:
    await log.append(database, [request("r1")])

    found = await computed(database, ZOOS["plain"])

    assert [finding.told for finding in found.findings()] == [
        f"1 requests are not compared: 1 {computing.EARLIER}"
    ]
