"""Each shared figure is one number wherever it is read: what differed once, and must not again."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.entries import FailedCall, Labelled
from litellm_messplus.core.policy import Policy
from litellm_messplus.core.verdict import Given, Rule
from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.records import GradingRecord, Record, RequestRecord
from litellm_messplus.runtime.vocabulary import (
    CallStatus,
    Failure,
    GradingStatus,
    LabelKind,
)
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.store.hours import REQUESTS
from litellm_messplus.store.judging import label_costs
from litellm_messplus.store.tables import labels, outcomes
from litellm_messplus.switching.modes import Arm, Trial
from tests.support.builders import (
    LARGE,
    SMALL,
    build_state,
    exploration_call,
    label,
    request,
    served_call,
)

COSTS = {SMALL: 1.0, LARGE: 10.0}


def small(request_id: str) -> list[Record]:
    """A request that the small model served for 1, where the largest would have cost 10."""
    record = request(request_id, largest=LARGE, chosen=SMALL, estimated_cost=COSTS)
    return [
        replace(record, is_exploration=False),
        served_call(request_id, candidate=SMALL, cost=1.0),
    ]


async def tally(database: AsyncEngine) -> Tally:
    async with database.connect() as connection:
        (found,) = (await tallies(connection, "zoo", source=REQUESTS)).values()
    return found


async def saved(database: AsyncEngine) -> float:
    """What may be spent on labels is a share of it."""
    today = datetime.now(UTC).date()
    async with database.connect() as connection:
        return (await label_costs(connection, today, today))["zoo"].saved


async def test_a_failed_explored_request_saves_nothing_and_pays(database: AsyncEngine) -> None:
    await log.append(database, small("r1"))
    assert await saved(database) == 9.0

    failed = served_call("r2", candidate=SMALL, cost=1.0, status=CallStatus.FAILURE)
    record = request("r2", largest=LARGE, chosen=SMALL, estimated_cost=COSTS)
    explored = exploration_call("r2", 1, candidate=LARGE, cost=10.0)
    await log.append(database, [replace(record, is_exploration=True), failed, explored])

    assert await saved(database) == (await tally(database)).saved == 9.0 - 10.0


async def test_served_as_before_saves_nothing_and_judging_is_paid(database: AsyncEngine) -> None:
    """By the one number of status, views and the budget of labels."""
    record = small("r2")[0]
    assert isinstance(record, RequestRecord)
    watched = replace(record, service_level="default:before", trial=Trial(Arm.BEFORE))
    graded = GradingRecord("g", "r1", datetime.now(UTC), "judge", GradingStatus.GRADED, 1, 0.5)
    await log.append(
        database, [*small("r1"), watched, small("r2")[1], replace(graded, zoo_cost=2.0)]
    )

    async with database.connect() as connection:
        views = [
            (await connection.execute(text(f"SELECT SUM(saved) FROM {view}"))).scalar_one()
            for view in ("savings", "requests_v")
        ]
    status = await read_status(database)

    savings = status["levels"][0]["overall"]["savings"]
    assert savings["saved"] == status["label_costs"][0]["saved"] == 7.0
    assert await saved(database) == 7.0
    assert views == [7.0] * 2


async def test_two_equal_checks_are_one_in_fold_and_table(database: AsyncEngine) -> None:
    """One of them spoke again, so that the other stands before it in the log."""
    sources = [("check:a", 1.0), ("check:b", 0.3), ("check:a", 0.5)]
    given = [
        label("r1", 0.0, label_id=f"l{place}", kind=LabelKind.CHECK, source=source, weight=weight)
        for place, (source, weight) in enumerate(sources)
    ]
    await log.append(database, [*small("r1"), *given])

    entries = [each async for each in read_entries(database, 0, await log.head(database))]
    last = [each for each in entries if isinstance(each, Labelled)][-1]
    learned = Rule().counting((*last.earlier, last.given))
    async with database.connect() as connection:
        found = (await connection.execute(select(labels).where(labels.c.counts))).one()
        weight = (await connection.execute(select(outcomes.c.satisfaction_weight))).scalar_one()
    assert learned is not None
    assert (found.source, found.weight, weight) == (learned.source, learned.weight, 0.3)


class Recording:
    """A policy that notes what counts of each request."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.counting: dict[str, Given] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        assert self.counting.get(entry.request_id) == previous
        self.counting[entry.request_id] = verdict
        self._policy.answered(entry, verdict, previous)

    def failed(self, call: FailedCall, verdict: Given | None) -> None:
        assert self.counting.pop(call.request_id, None) == verdict
        self._policy.failed(call, verdict)


words = st.lists(
    st.tuples(
        st.sampled_from([(LabelKind.FEEDBACK, "feedback"), (LabelKind.CHECK, "check:json")]),
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([0.0, 0.3, 1.0]),
    ),
    max_size=3,
)


@st.composite
def courses(draw: st.DrawFn, name: str) -> list[Record]:
    """A request that is judged before its end and after, often failed."""
    given = [
        label(name, value, label_id=f"{name}-{n}", kind=kind, source=source, weight=weight)
        for n, ((kind, source), value, weight) in enumerate(draw(words) + draw(words))
    ]
    status = draw(st.sampled_from(CallStatus))
    end: list[Record] = [served_call(name, status=status)]
    at = draw(st.integers(0, len(given)))
    return [request(name), *given[:at], *end, *given[at:]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@drawn(data=st.data())
async def test_the_fold_and_the_table_let_the_same_label_count_failed_or_not(
    database: AsyncEngine, data: st.DataObject
) -> None:
    """Whenever it was given: before the end or after."""
    head = await log.head(database)
    records = data.draw(courses(f"r{head}"))
    random, rest = Random(data.draw(st.integers(0, 9))), list(records)
    while rest:
        size = random.randint(1, len(rest))
        await log.append(database, rest[:size])
        del rest[:size]

    state = build_state()
    state.policy = cast(Policy, learned := Recording(state.policy))
    async for entry in read_entries(database, head, await log.head(database)):
        state.apply(entry)
    async with database.connect() as connection:
        is_new = labels.c.position > head
        rows = await connection.execute(select(labels).where(labels.c.counts, is_new))
        found = {row.request_id: (row.source, row.value, row.weight) for row in rows}
    counting = learned.counting.items()
    assert {name: (each.source, each.value, each.weight) for name, each in counting} == found


async def test_who_failed_is_apart_and_under_way_is_no_failure(database: AsyncEngine) -> None:
    records: list[Record] = [*small("answered"), *small("under way")[:1]]
    for failure in Failure:
        failed = served_call(failure, status=CallStatus.FAILURE)
        records += [small(failure)[0], replace(failed, failure=failure)]
    await log.append(database, records)

    found = await tally(database)

    assert (found.requests, found.succeeded, found.failed) == (8, 1, 6)
    by_whom = [getattr(found, f"failed_{failure.value}") for failure in Failure]
    assert by_whom == [1] * len(Failure)
    assert found.answered_share == pytest.approx(1 / 7)
