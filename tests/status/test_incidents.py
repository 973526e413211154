"""The status names the keys behind failures, late decisions, labels of checks, held verdicts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import LabelRecord, Record
from litellm_messplus.routing.decision import Reason
from litellm_messplus.status import newest
from litellm_messplus.status.build import read_status
from litellm_messplus.status.newest import KeyIncidents, heaviest
from litellm_messplus.status.render import render
from litellm_messplus.store import log
from litellm_messplus.vocabulary import CallStatus, LabelKind
from tests.support.builders import exploration_call, label, request, served_call


def asked(
    name: str, key: str | None, *labels: Record, failed: bool = False, reason: Reason = Reason.AHEAD
) -> list[Record]:
    status = CallStatus.FAILURE if failed else CallStatus.SUCCESS
    return [request(name, key_hash=key, reason=reason), served_call(name, status=status), *labels]


def checked(name: str, value: float) -> LabelRecord:
    return replace(
        label(name, value),
        label_id=f"check-{name}",
        kind=LabelKind.CHECK,
        source="check:complete",
    )


async def test_what_each_key_caused_is_counted_and_who_caused_nothing_is_left_out(
    database: AsyncEngine,
) -> None:
    held = replace(label("b1", 0.0), weight=0.0)
    unseen = replace(checked("a1", 0.0), label_id="unseen", call_id="a1.1")
    await log.append(
        database,
        [
            *asked("a1", "key-a", checked("a1", 0.0), exploration_call("a1"), unseen),
            *asked("a2", "key-a", checked("a2", 1.0), reason=Reason.DEADLINE_MISSED),
            *asked("a3", "key-a", failed=True),
            *asked("b1", "key-b", held),
            *asked("c1", None, label("c1", 1.0)),
            request("d1", key_hash="key-d", reason=Reason.DEADLINE_MISSED),
        ],
    )
    found = (await read_status(database, with_calibration=False)).incidents
    assert sorted(found, key=lambda each: each.key_hash or "") == [
        KeyIncidents("zoo", "key-a", 3, failed=1, late=1, checks=2, unsatisfied_checks=1, held=0),
        KeyIncidents("zoo", "key-b", 1, failed=0, late=0, checks=0, unsatisfied_checks=0, held=1),
        KeyIncidents("zoo", "key-d", 1, failed=0, late=1, checks=0, unsatisfied_checks=0, held=0),
    ]


async def test_only_the_newest_requests_are_read(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "OF_ALL", 3)
    await log.append(
        database, [each for n in range(5) for each in asked(f"r{n}", "key", failed=True)]
    )
    (found,) = (await read_status(database, with_calibration=False)).incidents
    assert (found.requests, found.failed) == (3, 3)


counts = st.integers(0, 50)
keys = st.lists(st.tuples(*(counts for _ in range(5))), max_size=30).map(
    lambda rows: [KeyIncidents("zoo", f"key-{n}", 100, *row) for n, row in enumerate(rows)]
)


@given(keys)
def test_ten_keys_at_most_are_named_and_whoever_has_most_of_a_kind_is_among_them(
    given: list[KeyIncidents],
) -> None:
    found = heaviest(given)

    assert len(found) == min(10, sum(any(each.counts) for each in given))
    for kind in zip(*(each.counts for each in given), strict=True):
        if 2 * max(kind) > sum(kind):
            assert given[kind.index(max(kind))] in found


def test_a_kind_of_which_all_have_much_hides_none_of_which_one_has_most() -> None:
    busy = [KeyIncidents("zoo", f"busy-{n}", 900, 0, 0, 900, 0, 0) for n in range(12)]
    failing = KeyIncidents("zoo", "failing", 9, 9, 0, 0, 0, 0)

    assert heaviest([*busy, failing])[0] == failing


async def test_the_table_is_there_where_there_is_something(database: AsyncEngine) -> None:
    console = Console(width=200, record=True)
    await log.append(database, asked("a", "key-a"))
    console.print(render(await read_status(database)))
    assert "what keys caused" not in console.export_text()

    await log.append(database, asked("b", "0123456789abcdef", failed=True))
    console.print(render(await read_status(database)))
    shown = console.export_text()
    assert "what keys caused, of the newest 5,000 requests" in shown
    assert "0123456789ab " in shown
