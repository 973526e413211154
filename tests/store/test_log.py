"""The log: contiguous positions, whole batches or none, and back out what went in."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, event, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.surface import NUMBERS, VERSION, read_surface
from litellm_messplus.records import Record
from litellm_messplus.rows import flat
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.rows import features_from_bytes, features_to_bytes
from litellm_messplus.store.tables import calls, labels, requests
from tests.support.builders import (
    LARGE,
    SMALL,
    build_engine,
    exploration_call,
    given,
    label,
    pair,
    request,
    served_call,
    traffic,
)
from tests.support.folding import fold_all, read, taught


async def rows(database: AsyncEngine, table: Any) -> list[Any]:
    async with database.connect() as connection:
        found = await connection.execute(select(table).order_by(table.c.position))
        return [SimpleNamespace(**row) for row in found.mappings()]


async def positions(database: AsyncEngine) -> list[int]:
    tables = (requests, calls, labels)
    return sorted([row.position for table in tables for row in await rows(database, table)])


async def test_an_empty_log_has_its_head_at_zero(database: AsyncEngine) -> None:
    assert await log.head(database) == 0
    assert await read(database, 0, 0) == []


@pytest.mark.parametrize("early", [False, True], ids=["label after", "label before"])
async def test_a_cached_repetition_teaches_nothing(database: AsyncEngine, early: bool) -> None:
    hit = served_call(is_cache_hit=True, prompt_tokens=10, completion_tokens=100, seconds=0.01)
    records: list[Record] = [label(), hit] if early else [hit, label()]
    await log.append(database, [request(), *records])

    entries = {entry["kind"]: entry for entry in await read(database, 0, 3)}
    assert entries["Labelled"]["is_served"]
    assert entries["Labelled"]["example"] is None
    for name in ("example", "prompt_tokens", "completion_tokens", "seconds"):
        assert entries["Settled"][name] is None
    before = await fold_all(database)
    assert taught(before) == taught(build_engine())
    assert before.state.policy.queue("default") == pytest.approx(0.6 - 1.0)


async def test_records_get_contiguous_positions_in_the_order_given(database: AsyncEngine) -> None:
    first = await log.append(database, [request("a"), label("a"), served_call("a"), request("b")])
    second = await log.append(database, [served_call("b")])
    assert (first.before, first.last) == (0, 4)
    assert (second.before, second.last) == (4, 5)
    assert [(r.request_id, r.position) for r in await rows(database, requests)] == [
        ("a", 1),
        ("b", 4),
    ]
    assert [r.position for r in await rows(database, labels)] == [2]
    assert [r.position for r in await rows(database, calls)] == [3, 5]
    assert await log.head(database) == 5


async def test_a_refused_batch_leaves_nothing_and_takes_no_number(database: AsyncEngine) -> None:
    await log.append(database, [request("a")])
    with pytest.raises(IntegrityError):
        await log.append(database, [request("b"), label("b"), request("a")])
    assert await log.head(database) == 1
    assert await positions(database) == [1]
    await log.append(database, [request("c")])
    assert [each.t for each in await rows(database, requests)] == [1, 2]


async def test_two_processes_share_one_sequence(database: AsyncEngine, database_url: str) -> None:
    other = create_engine(database_url)

    async def write(engine: AsyncEngine, prefix: str) -> list[log.Appended]:
        return [
            await log.append(engine, [request(f"{prefix}{n}"), served_call(f"{prefix}{n}")])
            for n in range(15)
        ]

    taken = await asyncio.gather(write(database, "a"), write(other, "b"))
    await other.dispose()
    assert await positions(database) == list(range(1, 61))
    batches = sorted((each.before, each.last) for appended in taken for each in appended)
    assert batches == [(start, start + 2) for start in range(0, 60, 2)]


async def test_no_number_is_given_twice(database: AsyncEngine, database_url: str) -> None:
    """Each worker counts what it knows of: here, that is none of the other's."""
    other = create_engine(database_url)

    async def write(engine: AsyncEngine, prefix: str) -> None:
        for n in range(1, 16):
            await log.append(engine, [request(f"{prefix}{n}", expected_t=n)])

    await asyncio.gather(write(database, "a"), write(other, "b"))
    await other.dispose()

    found = await rows(database, requests)
    assert [each.t for each in found] == list(range(1, 31))
    assert sorted(each.expected_t for each in found) == sorted([*range(1, 16)] * 2)


async def test_each_level_of_each_zoo_has_its_own_numbers(database: AsyncEngine) -> None:
    levels = [("zoo", "default"), ("zoo", "gold"), ("other", "gold"), ("zoo", "gold")]
    records = [
        request(f"r{n}", zoo=zoo, service_level=level)
        for n, (zoo, level) in enumerate([*levels, levels[0]])
    ]
    await log.append(database, records[:4])
    await log.append(database, records[4:])

    assert [each.t for each in await rows(database, requests)] == [1, 1, 1, 2, 2]


async def test_a_writer_sees_what_others_wrote(database: AsyncEngine, database_url: str) -> None:
    here, there = database, create_engine(database_url)
    for turn, writer in enumerate([here, here, there, here, here, there, there, here]):
        level = "gold" if turn == 2 else "default"
        await log.append(writer, [request(f"r{turn}", service_level=level), label(f"r{turn}")])
    await there.dispose()

    found = [(each.service_level, each.t) for each in await rows(database, requests)]
    numbers = iter(range(1, 8))
    assert found == [("gold", 1) if n == 2 else ("default", next(numbers)) for n in range(8)]


async def test_a_number_taken_behind_a_writers_back_is_reread(database: AsyncEngine) -> None:
    """As after a repair by hand, at the same position: what a writer remembers is wrong once."""
    await log.append(database, [request("a")])
    async with database.begin() as connection:
        await connection.execute(update(requests).values(t=2))
    with pytest.raises(IntegrityError):
        await log.append(database, [request("b")])
    await log.append(database, [request("b")])

    assert [each.t for each in await rows(database, requests)] == [2, 3]


async def test_a_request_comes_back_as_it_was_written(database: AsyncEngine) -> None:
    features, surface = pair(0.1, -0.7), read_surface(Conversation.of_text("ünï 17 cødé"))
    record = request(
        expected_t=2**40,
        features=features,
        surface=surface,
        surface_version=VERSION,
        encode_seconds=0.003,
        estimated_cost={SMALL: 0.1 + 0.2, LARGE: 5e-324},
        created_at=datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=2))),
        prompt="ünï cødé 你好",
    )
    await log.append(database, [record])
    (found,) = await rows(database, requests)
    for name, value in flat(record).items():
        if name not in ("t", "features", "surface"):
            assert getattr(found, name) == value, name
    assert found.created_at.tzinfo is UTC
    assert found.features == features_to_bytes(features)
    assert found.surface == features_to_bytes(surface)
    assert found.estimated_cost_largest == 5e-324
    await log.append(database, [request("r2", estimated_cost={SMALL: 1.0})])
    assert (await rows(database, requests))[1].estimated_cost_largest is None  # not healthy then


async def test_a_call_and_a_label_come_back_as_they_were_written(database: AsyncEngine) -> None:
    call = exploration_call(cost=None, prompt_tokens=None, answer="42", error="none")
    verdict = label(value=0.3, number=1, comment="good", weight=0.5)
    await log.append(database, [request(), call, verdict])
    (found,) = await rows(database, calls)
    assert vars(found) == flat(call) | {"position": found.position}
    (found,) = await rows(database, labels)
    assert vars(found) == flat(verdict) | {"position": found.position, "counts": True}


@pytest.mark.parametrize(
    ("garbled", "stored"), [("a\ud800b", "a?b"), ("a\0b", "a\ufffdb"), ("\udfff", "?")], ids=ascii
)
async def test_text_that_no_database_takes_is_written_with_marks(
    database: AsyncEngine, garbled: str, stored: str
) -> None:
    await log.append(database, [request(prompt=garbled), label(comment=garbled)])
    assert [r.prompt for r in await rows(database, requests)] == [stored]
    assert [r.comment for r in await rows(database, labels)] == [stored]


def test_features_are_little_endian_float32() -> None:
    assert features_to_bytes(pair(1.0, -2.0)) == bytes.fromhex("0000803f000000c0")
    back = features_from_bytes(features_to_bytes(pair(0.1, -0.7)))
    assert back.dtype == np.float32
    assert np.array_equal(back, pair(0.1, -0.7))


TEXTS = ["", "What is 17 + 25?", "你好 \ud800", "x" * 20_000]
SURFACES = [read_surface(Conversation.of_text(text)) for text in TEXTS]
OTHERS = np.ones(len(NUMBERS), dtype=np.float32)


@pytest.mark.parametrize(
    ("surface", "version", "learned"),
    [
        *((each, VERSION, each.tobytes()) for each in SURFACES),
        pytest.param(OTHERS, "surface-0", None, id="another version's"),
        pytest.param(OTHERS, None, None, id="of no version"),
        pytest.param(OTHERS[1:], VERSION, None, id="not as many"),
        pytest.param(None, None, None, id="of an earlier version of the code"),
    ],
)
async def test_a_surface_is_read_back_to_the_bit_or_where_it_means_something_else_not_at_all(
    database: AsyncEngine, surface: Any, version: str | None, learned: bytes | None
) -> None:
    plain = request(surface=surface, surface_version=version)
    await log.append(database, [plain, served_call(), label()])
    _, *brought = await read(database, 0, 3)
    assert [each["example"]["surface"] for each in brought] == [learned] * 2


async def test_late_features_are_null_and_none_when_read_back(database: AsyncEngine) -> None:
    await log.append(database, [request("late", features=None), served_call("late"), label("late")])
    (row,) = await rows(database, requests)
    assert (row.features, row.encode_seconds) == (None, None)
    *_, labelled = await read(database, 0, 3)
    assert labelled["example"]["features"] is None
    assert labelled["example"]["candidate"] == LARGE


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_an_entry_says_what_was_known_then(database: AsyncEngine, seed: int) -> None:
    """Read while it grows, record by record, the log is the same as read in one piece later."""
    grown = []
    for record in traffic(12, seed, replaces=True):
        appended = await log.append(database, [record])
        grown += await read(database, appended.before, appended.last)
    assert grown == await read(database, 0, await log.head(database))
    assert len(grown) == await log.head(database)


async def test_a_long_log_is_read_in_pages(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(database, traffic(10))
    head = await log.head(database)
    whole = await read(database, 0, head)
    monkeypatch.setattr("litellm_messplus.store.entries.PAGE", 3)
    assert await read(database, 0, head) == whole
    assert await read(database, 5, 11) == whole[5:11]


async def test_a_label_that_came_first_is_brought_along_by_its_call(database: AsyncEngine) -> None:
    await log.append(
        database,
        [
            request(),
            label(value=0.0, label_id="1"),
            label(value=1.0, label_id="2"),
            served_call(),
            label(value=0.5, label_id="3"),
        ],
    )
    _, first, second, call, third = await read(database, 0, 5)
    assert (first["earlier"], first["example"], first["is_served"]) == ((), None, True)
    assert (second["earlier"], second["example"]) == ((first["given"],), None)
    known = (second["given"],)  # which replaced the first
    assert (call["given"], call["example"]["candidate"]) == (known, LARGE)
    assert (third["earlier"], third["example"]["candidate"]) == (known, LARGE)


async def test_a_failed_call_teaches_nothing(database: AsyncEngine) -> None:
    failed = served_call(status="failure")
    await log.append(database, [request(), label(label_id="1"), failed, label(label_id="2")])
    _, _, call, verdict = await read(database, 0, 4)
    assert (call["example"], call["prompt_tokens"], call["completion_tokens"]) == (None, None, None)
    assert call["seconds"] is None
    assert (verdict["example"], verdict["is_served"]) == (None, True)


async def test_the_label_of_an_exploration_is_not_the_served_ones(database: AsyncEngine) -> None:
    await log.append(
        database, [request(), served_call(), exploration_call(), label(), label(number=1)]
    )
    served, explored = await read(database, 3, 5)
    assert (served["is_served"], served["example"]["candidate"]) == (True, LARGE)
    assert (explored["is_served"], explored["example"]["candidate"]) == (False, SMALL)
    assert explored["earlier"] == ()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"alpha": 0.6, "aim": 0.75, "expected_satisfaction": 0.5}, 0.25),
        ({"alpha": 0.6, "aim": 0.75, "expected_satisfaction": None}, 0.0),
        ({"alpha": 0.6, "aim": None, "expected_satisfaction": None}, 0.0),
    ],
    ids=["as decided", "no prediction", "from before there was an aim"],
)
async def test_a_decision_brings_what_was_expected_of_it(
    database: AsyncEngine, columns: dict[str, float | None], expected: float
) -> None:
    await log.append(database, [request("r1", **columns), label("r1", 1.0, weight=0.5)])
    entered, judged = await read(database, 0, 2)
    assert entered["expected_shortfall"] == expected
    assert judged["alpha"] == (columns["aim"] or columns["alpha"])
    assert (judged["request_id"], judged["call_id"]) == ("r1", "r1.0")
    assert judged["given"] == given(1.0, weight=0.5)


async def test_a_call_brings_the_newest_label_of_each_source(database: AsyncEngine) -> None:
    early = label("r1", 0.0, weight=0.5)
    newer = label("r1", 1.0, weight=0.25, label_id="newer")
    judge = LabelKind.JUDGE
    judged = label("r1", 0.5, label_id="judged", kind=judge, source="judge")
    await log.append(database, [request("r1"), early, newer, judged, served_call("r1")])
    await log.append(database, [request("r2"), served_call("r2")])
    *_, settled, _, bare = await read(database, 0, 7)
    assert settled["call_id"] == "r1.0"
    assert settled["given"] == (given(1.0, 0.25), given(0.5, kind=judge))
    assert bare["given"] == ()


@pytest.mark.parametrize(
    ("durable", "levels", "changes"),
    [
        ((False,), [1], 1),
        ((True,), [2], 1),
        ((False, True, True, False, False, True), [1, 2, 2, 1, 1, 2], 4),
    ],
)
async def test_only_what_must_be_durable_waits_for_the_disk(
    database: AsyncEngine, durable: Sequence[bool], levels: Sequence[int], changes: int
) -> None:
    """SQLite's `synchronous` as each commit had it: 1 is NORMAL, 2 is FULL. A connection keeps
    it: it is set only where it changes."""
    seen, statements = [], []

    def committing(connection: Connection) -> None:
        seen.append(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())

    def executing(_connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith("PRAGMA synchronous ="):
            statements.append(statement)

    event.listen(database.sync_engine, "commit", committing)
    event.listen(database.sync_engine, "before_cursor_execute", executing)
    for number, is_durable in enumerate(durable):
        await log.append(database, [label(label_id=f"l{number}")], is_durable=is_durable)
    assert seen == levels
    assert len(statements) == changes
