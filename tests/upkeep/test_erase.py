"""What identifies the requests of one key or user is erased, and promise and sums stay."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import erasing, log
from litellm_messplus.store.erasing import Owner
from litellm_messplus.store.rows import features_to_bytes
from litellm_messplus.store.tables import requests
from litellm_messplus.upkeep.prune import erase
from tests.support.aged_log import history, snapshot_now, state_of
from tests.support.builders import label, looks, with_columns
from tests.support.summing import assert_projections_are_the_logs

HASH, ALIAS, USER, END_USER = "5f3a-of-a-key", "her alias", "her user", "her end user"
WORDS = ("her prompt", "her answer", "her comment", "her error", "her team", "her tag", "her call")
OWNER = Owner(key=HASH)


def hers(records: Sequence[Record], every: int = 3) -> list[Record]:
    """The records, every so many requests asked by one key, with words of hers wherever words are
    kept."""
    own = {f"r{number}" for number in range(0, len(records), every)}
    found: list[Record] = []
    for record in records:
        match record:
            case RequestRecord(request_id=request_id) if request_id in own:
                record = with_columns(
                    record,
                    key_hash=HASH,
                    key_alias=ALIAS,
                    user_id=USER,
                    end_user=END_USER,
                    team_id="her team",
                    tags=("her tag",),
                    prompt="her prompt",
                    litellm_call_id=f"her call {request_id}",
                    session=f"session of {request_id}",
                    prefix=f"prefix of {request_id}",
                    conversation_draw=0.25,
                )
            case CallRecord(request_id=request_id) if request_id in own:
                record = replace(
                    record, answer="her answer", error="her error", response_id="her response"
                )
                record = replace(record, **looks("So, (sorry): 1 + 1 = 2."))
            case LabelRecord(request_id=request_id) if request_id in own:
                record = replace(record, comment="her comment")
        found.append(record)
    return found


async def write(database: AsyncEngine, zoo: Zoo, count: int = 30) -> None:
    await log.append(database, hers(history(count)))
    await snapshot_now(database, zoo)


async def rows(database: AsyncEngine) -> list[dict[str, Any]]:
    async with database.connect() as connection:
        found = await connection.execute(select(requests).order_by(requests.c.position))
        return [dict(row) for row in found.mappings()]


def bytes_of(database: AsyncEngine) -> bytes:
    """The file, and what is still in SQLite's log of writes."""
    path = Path(database.url.database or "")
    return b"".join(each.read_bytes() for each in (path, Path(f"{path}-wal")) if each.exists())


@pytest.mark.parametrize("owner", [OWNER, Owner(key=ALIAS), Owner(user=USER), Owner(user=END_USER)])
async def test_nothing_that_says_whose_they_are_or_what_was_in_them_is_left_in_the_file(
    database: AsyncEngine, database_url: str, zoo: Zoo, owner: Owner
) -> None:
    await write(database, zoo)
    found = await erase(database_url, owner)
    await database.dispose()

    assert found.requests == 10
    written = bytes_of(database)
    for words in (HASH, ALIAS, USER, END_USER, "session of r", "prefix of r", *WORDS):
        assert words.encode() not in written, words
    assert features_to_bytes(looks("So, (sorry): 1 + 1 = 2.")["answer_surface"]) not in written
    own = [row for row in await rows(database) if row["key_hash"] is None]
    assert {(row["features"], row["surface"]) for row in own} == {(None, None)}


async def test_the_rows_of_others_and_the_numbers_of_all_stay(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo)
    before = await rows(database)
    await erase(database_url, OWNER)

    for was, now in zip(before, await rows(database), strict=True):
        changed = {name for name in was if was[name] != now[name]}
        allowed = set(erasing.ERASED[requests])
        assert changed == set() if was["key_hash"] != HASH else changed <= allowed
    await assert_projections_are_the_logs(database)


async def test_a_start_goes_on_from_it(database: AsyncEngine, database_url: str, zoo: Zoo) -> None:
    await write(database, zoo)
    before = await state_of(database, zoo)
    await erase(database_url, OWNER)
    assert await state_of(database, zoo) == before

    late = [label(f"r{number}", 0.0, label_id=f"late {number}") for number in (3, 4)]
    await log.append(database, late)
    assert await state_of(database, zoo) != before


async def test_a_dry_run_only_counts(database: AsyncEngine, database_url: str, zoo: Zoo) -> None:
    await write(database, zoo)
    before = await rows(database)
    assert (await erase(database_url, OWNER, is_dry_run=True)).requests == 10
    assert await rows(database) == before
    assert (await erase(database_url, Owner(key="nobody"))).requests == 0
    assert await rows(database) == before
