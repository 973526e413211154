"""Who requested and judged how much in the last day, and what of it counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.labels.key_pull import KeyActivity, LevelActivity, Tally
from litellm_messplus.records import LabelRecord, RequestRecord
from litellm_messplus.store import key_activity as module
from litellm_messplus.store import log
from litellm_messplus.store.key_activity import KeyStatus, activity, heaviest_keys
from tests.support.builders import label, request

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(hours=25)


def sent(request_id: str, key: str | None, level: str = "default") -> RequestRecord:
    return request(request_id, key_hash=key, service_level=level, created_at=NOW)


def rated(request_id: str, value: float, name: str = "", **changed: Any) -> LabelRecord:
    columns: dict[str, Any] = {
        "created_at": NOW,
        "label_id": f"{request_id}-{name or value}",
        **changed,
    }
    return label(request_id, value, **columns)


async def fill(database: AsyncEngine) -> None:
    await log.append(
        database,
        [
            *(sent(f"a{n}", "alice") for n in range(5)),
            *(sent(f"b{n}", "bob") for n in range(3)),
            sent("g1", "alice", "gold"),
            request("old", key_hash="alice", created_at=LONG_AGO),
            rated("a0", 1.0, "first"),
            rated("a0", 0.0, "second"),  # replaces it
            rated("a1", 1.0),
            rated("a1", 0.0, "held", weight=0.0),
            rated("old", 0.5),  # today, of a request of yesterday
            rated("old", 0.5, "yesterday", created_at=LONG_AGO, number=1),
            rated("a2", 1.0, "judged", kind="judge", source="judge", weight=0.5),
            rated("a3", 0.0, "cut", kind="check", source="check:complete"),
            rated("a4", 1.0, "fine", kind="check", source="check:own", weight=0.3),
            rated("b0", 0.0),
            rated("g1", 1.0),
        ],
    )


async def test_the_labels_and_requests_of_each_key_at_a_level(database: AsyncEngine) -> None:
    await fill(database)
    alice = KeyActivity(5, Tally(3.3, 1.8), faults=1.0)
    assert await activity(database, "zoo", "default") == LevelActivity(
        8, {"alice": alice, "bob": KeyActivity(3, Tally(1.0, 0.0))}, judges=Tally(0.5, 0.5)
    )
    assert await activity(database, "zoo", "gold") == LevelActivity(
        1, {"alice": KeyActivity(1, Tally(1.0, 1.0))}
    )
    assert await activity(database, "another", "default") == LevelActivity(0, {})


async def test_the_heaviest_keys_come_first(database: AsyncEngine) -> None:
    await fill(database)
    async with database.connect() as connection:
        found = await heaviest_keys(connection, 10)
        assert await heaviest_keys(connection, 1) == found[:1]
    assert found == [
        KeyStatus("zoo", "default", "alice", 5, 7, 5, 0.5, 1),
        KeyStatus("zoo", "default", "bob", 3, 1, 1, 1.0, 0),
        KeyStatus("zoo", "gold", "alice", 1, 1, 1, 0.0, 0),
    ]


async def test_only_so_many_keys_are_read(database: AsyncEngine) -> None:
    keys = [f"key-{number:04}" for number in range(module.MOST_KEYS + 7)]
    await log.append(database, [sent(key, key) for key in keys])
    await log.append(database, [rated(key, 1.0) for key in keys])
    found = await activity(database, "zoo", "default")
    assert len(found.keys) == module.MOST_KEYS
    assert found.requests == len(keys)


async def test_no_more_of_the_log_is_read_than_its_newest_records(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = NOW - timedelta(hours=1)
    old = request("r0", key_hash="alice", created_at=early)
    await log.append(database, [old, rated("r0", 1.0, created_at=early)])
    await log.append(database, [sent(f"r{n}", "alice") for n in range(1, 5)])
    assert (await activity(database, "zoo", "default")).requests == 5

    monkeypatch.setattr(module, "MOST_RECORDS", 4)

    assert await activity(database, "zoo", "default") == LevelActivity(4)


async def test_requests_without_a_key_are_those_of_one(database: AsyncEngine) -> None:
    await log.append(database, [sent("r1", None), sent("r2", None), rated("r1", 1.0)])
    keys = (await activity(database, "zoo", "default")).keys
    assert keys == {None: KeyActivity(2, Tally(1.0, 1.0))}
