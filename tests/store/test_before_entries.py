"""How the labels of a request that was served as before are folded in."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core import snapshot
from litellm_messplus.core.account import Account
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Labelled
from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import WARM_UP
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.switching.modes import Arm
from tests.support.builders import (
    LARGE,
    SMALL,
    adaptive_of,
    build_engine,
    decided,
    exploration_call,
    label,
    request,
    served_call,
    traffic,
)
from tests.support.folding import fold_all


def before(request_id: str = "r1", **changed: Any) -> Record:
    """Served by the largest, as before; the router would have chosen the small one."""
    given: dict[str, Any] = {
        "service_level": "default:before",
        "arm": Arm.BEFORE,
        "chosen": LARGE,
        "would_choose": SMALL,
        "would_cost": 1.0,
        "aim": 0.6,
        "expected_satisfaction": 0.5,
        "is_exploration": False,
    }
    return request(request_id, **{**given, **changed})


async def labels_in(database: AsyncEngine, *records: Record) -> list[Labelled]:
    appended = await log.append(database, list(records))
    entries = [each async for each in read_entries(database, 0, appended.last)]
    return [entry for entry in entries if isinstance(entry, Labelled)]


async def test_a_label_on_the_served_says_nothing_of_others(database: AsyncEngine) -> None:
    (found,) = await labels_in(database, before(), served_call(), label())

    assert found.is_served
    assert not found.moves_queue
    assert found.example is not None  # it teaches all the same


async def test_where_the_choice_serves_anyway_its_label_counts(database: AsyncEngine) -> None:
    (found,) = await labels_in(database, before(would_choose=LARGE), served_call(), label())

    assert found.moves_queue
    assert found.given.stands_for == 1.0


async def test_a_sampled_call_stands_for_those_that_were_not(database: AsyncEngine) -> None:
    sampled = before(sample_probability=0.1, is_exploration=True, exploration_calls=1)
    (found,) = await labels_in(
        database, sampled, served_call(), exploration_call(), label(number=1)
    )

    assert not found.is_served
    assert found.moves_queue
    assert found.given.stands_for == pytest.approx(10.0)


@pytest.mark.parametrize(("unseen", "counts"), [(True, [False, True]), (False, [True])])
async def test_litellms_own_choice_counts_once(
    database: AsyncEngine, unseen: bool, counts: list[bool]
) -> None:
    """Where the same model was called unseen too, that call was drawn, and the other was not."""
    sampled = before(chosen="litellm", sample_probability=0.5 if unseen else None)
    records = [sampled, served_call(candidate=SMALL), label()]
    if unseen:
        records += [exploration_call(), label(number=1)]
    found = await labels_in(database, *records)

    assert [each.moves_queue for each in found] == counts


async def test_served_as_before_leaves_the_promises_queues(database: AsyncEngine) -> None:
    """And a log with them folds the same whole, and entry by entry."""
    records: list[Record] = traffic(40)
    await log.append(database, records)
    alone = await fold_all(database)
    others: list[Record] = []
    for number in range(30):
        name = f"b{number}"
        others += [before(name), served_call(name, candidate=None), label(name)]
    await log.append(database, others)
    both = await fold_all(database)

    for level in ("default", "gold"):
        assert both.state.policy.queue(level) == alone.state.policy.queue(level)
        assert both.state.requests[level] == alone.state.requests[level]
    assert both.state.requests["default:before"] == 30
    restored = build_engine()
    restored.resume(snapshot.load(snapshot.dump(both.state), restored.empty_state()))
    assert snapshot.dump(restored.state) == snapshot.dump(both.state)


def test_the_rehearsal_begins_anew_after_the_warm_up() -> None:
    engine: Engine = build_engine()
    policy = adaptive_of(engine.state)
    for number in range(WARM_UP):
        for level in ("default", "default:before"):
            entry = decided(level, f"{level}{number}", expected_shortfall=0.1)
            policy.decided(entry)
    owed = policy.queue("default")
    assert policy.queue("default:before") == owed > 0.0
    for level in ("default", "default:before"):
        policy.decided(decided(level, f"{level} next", expected_shortfall=0.1))

    assert policy.queue("default") == pytest.approx(
        owed + 0.1 * policy.account("default").answered_share
    )
    assert policy.queue("default:before") == pytest.approx(0.1)
    assert isinstance(policy.account("default:before"), Account)
