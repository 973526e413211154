"""The status shows how long the newest conversations are, what holds them and what was lost, and
names the keys behind failures, late decisions and labels of checks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.decision import Reason
from litellm_messplus.figures.figure import Plain
from litellm_messplus.records import LabelRecord, Record
from litellm_messplus.runtime.vocabulary import CallStatus, LabelKind
from litellm_messplus.status import newest
from litellm_messplus.status.build import read_status
from litellm_messplus.status.newest import CAUSED, heaviest
from litellm_messplus.store import log
from tests.support.builders import LARGE, SMALL, exploration_call, label, request, served_call


def conversation(
    name: str, served: Sequence[str], holds: Sequence[str | None], **changed: Any
) -> list[Record]:
    """One line of turns, each at a cost of 5."""
    found: list[Record] = []
    for turn, (candidate, hold) in enumerate(zip(served, holds, strict=True), 1):
        own = name if turn == 1 else f"{name}-{turn}"
        place = {"conversation": name, "line": name, "prefix": f"{own:0>32}", "turn": turn}
        found.append(request(own, hold=hold, **place, **changed))
        found.append(served_call(own, candidate=candidate))
    return found


async def test_turns_costs_switches_holds_are_of_the_newest(database: AsyncEngine) -> None:
    await log.append(
        database,
        [
            *conversation("a", [SMALL] * 4, [None, "tool_loop", "warm", "state"]),
            *conversation("b", [SMALL, LARGE], [None, "trouble"]),
            *conversation("c", [SMALL, LARGE, LARGE], [None, "lost", "unknown"]),
            exploration_call("c", cost=1.0),
            request("alone"),
            served_call("alone"),
        ],
    )
    (found,) = (await read_status(database))["conversations"]
    assert (found["zoo"], found["service_level"]) == ("zoo", "default")
    assert tuple(found[name] for name in ("requests", "conversations", "turns")) == (9, 3, 3.0)
    assert found["cost"] == pytest.approx((9 * 5.0 + 1.0) / 3)
    assert found["switches"] == 2
    assert found["holds"] == dict.fromkeys(
        ("tool_loop", "warm", "state", "trouble", "lost", "unknown"), 1
    )


async def test_a_conversation_that_began_before_is_no_shorter_one(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns that are among the newest count by their holds alone."""
    monkeypatch.setattr(newest, "OF_EACH_LEVEL", 3)
    held: list[str | None] = [None, "warm"]
    records = [*conversation("a", [SMALL] * 2, held), *conversation("b", [SMALL] * 2, held)]
    await log.append(database, records)
    (found,) = (await read_status(database))["conversations"]
    assert tuple(found[name] for name in ("requests", "conversations", "turns", "cost")) == (
        3,
        1,
        2.0,
        10.0,
    )
    assert found["holds"]["warm"] == 2


async def test_the_order_in_which_workers_write_is_no_switch(database: AsyncEngine) -> None:
    """Two workers may write the steps of one loop in another order than that of the steps."""
    first, second, third = (
        conversation("a", [SMALL, SMALL, LARGE], [None, "tool_loop", "lost"])[2 * turn :][:2]
        for turn in range(3)
    )
    await log.append(database, [*third, *first, *second])
    (found,) = (await read_status(database))["conversations"]
    assert found["switches"] == 1
    async with database.connect() as connection:
        (row,) = (await connection.execute(text("SELECT switches FROM conversations"))).all()
    assert row.switches == 1


async def test_what_nobody_knows_is_not_zero(database: AsyncEngine) -> None:
    begun = conversation("a", [SMALL], [None])
    await log.append(database, [begun[0], served_call("a", cost=None)])
    (found,) = (await read_status(database))["conversations"]
    assert (found["turns"], found["cost"]) == (1.0, None)


async def test_a_log_without_conversations_says_nothing_of_them(database: AsyncEngine) -> None:
    await log.append(database, [request("alone"), served_call("alone")])
    assert (await read_status(database))["conversations"] == []


# Keys.


def records_of(
    name: str, key: str | None, *labels: Record, failed: bool = False, reason: Reason = Reason.AHEAD
) -> list[Record]:
    status = CallStatus.FAILURE if failed else CallStatus.SUCCESS
    return [request(name, key_hash=key, reason=reason), served_call(name, status=status), *labels]


def caused(key: str, requests: int, **counts: int) -> Plain:
    return {
        "zoo": "zoo",
        "key_hash": key,
        "requests": requests,
        **dict.fromkeys(CAUSED, 0),
        **counts,
    }


def checked(name: str, value: float) -> LabelRecord:
    return replace(
        label(name, value),
        label_id=f"check-{name}",
        kind=LabelKind.CHECK,
        source="check:complete",
    )


async def test_what_each_key_caused_is_counted_zeros_are_out(database: AsyncEngine) -> None:
    held = replace(label("b1", 0.0), weight=0.0)
    unseen = replace(checked("a1", 0.0), label_id="unseen", call_id="a1.1")
    await log.append(
        database,
        [
            *records_of("a1", "key-a", checked("a1", 0.0), exploration_call("a1"), unseen),
            *records_of("a2", "key-a", checked("a2", 1.0), reason=Reason.DEADLINE_MISSED),
            *records_of("a3", "key-a", failed=True),
            *records_of("b1", "key-b", held),
            *records_of("c1", None, label("c1", 1.0)),
            request("d1", key_hash="key-d", reason=Reason.DEADLINE_MISSED),
        ],
    )
    found = (await read_status(database, with_calibration=False))["incidents"]
    assert sorted(found, key=lambda each: each["key_hash"] or "") == [
        caused("key-a", 3, failed=1, late=1, checks=2, unsatisfied_checks=1),
        caused("key-b", 1, held=1),
        caused("key-d", 1, late=1),
    ]


async def test_only_the_newest_requests_are_read(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "OF_ALL", 3)
    await log.append(
        database, [each for n in range(5) for each in records_of(f"r{n}", "key", failed=True)]
    )
    (found,) = (await read_status(database, with_calibration=False))["incidents"]
    assert (found["requests"], found["failed"]) == (3, 3)


counts = st.integers(0, 50)
keys = st.lists(st.tuples(*(counts for _ in range(5))), max_size=30).map(
    lambda rows: [
        caused(f"key-{n}", 100, **dict(zip(CAUSED, row, strict=True))) for n, row in enumerate(rows)
    ]
)


@given(keys)
def test_ten_keys_are_named_with_whoever_has_most(given: list[Plain]) -> None:
    found = heaviest(given)

    counts = [[each[name] for name in CAUSED] for each in given]
    assert len(found) == min(10, sum(map(any, counts)))
    for kind in zip(*counts, strict=True):
        if 2 * max(kind) > sum(kind):
            assert given[kind.index(max(kind))] in found


def test_a_kind_of_which_all_have_much_hides_none_of_which_one_has_most() -> None:
    busy = [caused(f"busy-{n}", 900, checks=900) for n in range(12)]
    failing = caused("failing", 9, failed=9)

    assert heaviest([*busy, failing])[0] == failing
