"""What identifies the requests of one key or user is erased, and the state is what it was: a start
goes on exactly, whatever comes after."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.restore import restore
from litellm_messplus.runtime.errors import ConfigurationError, MessplusError
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import erasing, log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.entries import read_entries
from litellm_messplus.store.rows import features_to_bytes
from litellm_messplus.store.snapshots import base_positions
from litellm_messplus.store.tables import requests, snapshots
from litellm_messplus.upkeep.erase import Owner, dry_run, erase
from tests.support.aged_log import HOUR, LONG_AGO, TODAY, history, snapshot_now, state_of
from tests.support.builders import build_engine, label, looks, request, served_call, with_columns
from tests.support.folding import bits, fold_all
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
    found = await erase(database_url, owner, None)
    await database.dispose()

    assert found.erased == {"zoo": 10}
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
    await erase(database_url, OWNER, None)

    for was, now in zip(before, await rows(database), strict=True):
        changed = {name for name in was if was[name] != now[name]}
        allowed = set(erasing.ERASED[requests])
        assert changed == set() if was["key_hash"] != HASH else changed <= allowed
    await assert_projections_are_the_logs(database)


@pytest.mark.parametrize("seed", range(4))
async def test_a_start_goes_on_as_if_nothing_had_been_erased(
    tmp_path: Path, zoo: Zoo, seed: int
) -> None:
    """Two databases with the same log; of one, a key is erased on the way, between requests."""
    records = hers(history(60, seed))
    between = [place for place, each in enumerate(records) if isinstance(each, RequestRecord)]
    parts = sorted(Random(seed).sample(between[20:], 2))
    whole = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'whole.db'}")
    erased = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'erased.db'}")
    for database in (whole, erased):
        await migrate(database)
    first = 0
    for last in (*parts, len(records)):
        for database in (whole, erased):
            await log.append(database, records[first:last])
        state = bits(await fold_all(whole, zoo))
        assert await state_of(erased, zoo) == state
        await snapshot_now(erased, zoo)
        await erase(str(tmp_path / "erased.db"), OWNER, None)
        async with erased.begin() as connection:
            await connection.exec_driver_sql("DELETE FROM snapshots")
        assert await state_of(erased, zoo) == state
        first = last
    for database in (whole, erased):
        await database.dispose()


async def test_what_comes_later_on_an_erased_request_teaches_a_start_what_it_teaches_a_worker(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo)
    worker = build_engine(zoo)
    before = await restore(database, {"zoo": worker})
    await erase(database_url, OWNER, None)

    late = [label(f"r{n}", 0.0, label_id=f"late-{n}") for n in (3, 4, 6)]
    await log.append(database, [*late, request("new", created_at=TODAY), served_call("new")])
    async for entry in read_entries(database, before, await log.head(database)):
        worker.apply(entry)

    assert await state_of(database, zoo) == bits(worker)


async def test_a_dry_run_says_what_would_be_erased_and_changes_nothing(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo)
    before = await rows(database)
    would = await dry_run(database_url, OWNER, None)

    assert (would.erased, would.is_dry_run) == ({"zoo": 10}, True)
    assert await rows(database) == before
    assert await base_positions(database) == {}
    assert (await erase(database_url, OWNER, None)).erased == would.erased


async def test_requests_of_the_last_day_stay_and_a_younger_date_is_refused(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await log.append(database, [request("r0", key_hash=HASH, created_at=TODAY)])
    await snapshot_now(database, zoo)

    found = await erase(database_url, OWNER, None)
    assert (found.erased, found.younger) == ({}, {"zoo": 1})
    with pytest.raises(ConfigurationError, match=r"--before.*at least a day ago"):
        await erase(database_url, OWNER, TODAY - timedelta(hours=20))


async def test_only_what_was_decided_before_the_date_is_erased(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo)
    before: datetime = LONG_AGO + 12 * HOUR
    found = await erase(database_url, OWNER, before)

    assert found.erased == {"zoo": 4}
    left = [row["created_at"] for row in await rows(database) if row["key_hash"] == HASH]
    assert len(left) == found.younger["zoo"] == 6
    assert min(left) >= before


async def test_a_request_with_a_label_that_no_snapshot_holds_stays_until_one_does(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo)
    await log.append(database, [label("r3", 0.0, label_id="late")])
    state = await state_of(database, zoo)

    found = await erase(database_url, OWNER, None)
    assert (found.erased, found.held) == ({"zoo": 9}, {"zoo": 1})
    assert await state_of(database, zoo) == state
    await snapshot_now(database, zoo)
    assert (await erase(database_url, OWNER, None)).erased == {"zoo": 1}


async def test_a_zoo_without_a_snapshot_keeps_its_requests_and_gets_no_base(
    database: AsyncEngine, database_url: str
) -> None:
    await log.append(database, hers(history(30)))
    found = await erase(database_url, OWNER, None)

    assert (found.erased, found.held) == ({}, {"zoo": 10})
    assert await base_positions(database) == {}


async def test_snapshots_that_are_taken_away_meanwhile_end_it_before_anything_is_erased(
    database: AsyncEngine, database_url: str, zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(database, zoo)
    before = await rows(database)
    look = erasing.erasable

    async def and_forget(*given: Any) -> list[str]:
        async with database.begin() as connection:
            await connection.execute(delete(snapshots))
        return await look(*given)

    monkeypatch.setattr(erasing, "erasable", and_forget)
    with pytest.raises(MessplusError, match="snapshots were replaced"):
        await erase(database_url, OWNER, None)
    assert await rows(database) == before


async def test_it_goes_in_short_transactions_and_the_next_run_finishes_what_one_began(
    database: AsyncEngine, database_url: str, zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(database, zoo)
    monkeypatch.setattr(erasing, "CHUNK", 4)
    take, sizes = erasing.erase, []

    async def and_be_cut_off(engine: AsyncEngine, chunk: Any, reached: Any) -> list[str]:
        sizes.append(len(chunk))
        if len(sizes) == 2:
            raise KeyboardInterrupt
        return await take(engine, chunk, reached)

    monkeypatch.setattr(erasing, "erase", and_be_cut_off)
    state = await state_of(database, zoo)
    with pytest.raises(KeyboardInterrupt):
        await erase(database_url, OWNER, None)
    assert sizes == [4, 4]
    assert await state_of(database, zoo) == state

    assert (await erase(database_url, OWNER, None)).erased == {"zoo": 6}
    assert await state_of(database, zoo) == state
