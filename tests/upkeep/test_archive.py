"""The archive holds every row that is deleted, as it was, and nothing is deleted before."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import GradingRecord, Record
from litellm_messplus.runtime.vocabulary import GradingStatus
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log, pruning
from litellm_messplus.store.pruning import (
    ABOUT_REQUESTS,
    PRUNED,
    BusyPruningError,
    Part,
    alone,
    first_part,
)
from litellm_messplus.store.tables import requests
from litellm_messplus.upkeep import prune as prunes
from litellm_messplus.upkeep.archive import Archive, ArchiveError
from litellm_messplus.upkeep.prune import prune
from tests.support.aged_log import HOUR, LONG_AGO, history, write
from tests.support.builders import NOW, build_zoo, energy, served_call

CUT = LONG_AGO + 30 * HOUR


@pytest.fixture
def parts_of_fifty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "SPAN", 50)
    monkeypatch.setattr(pruning, "CHUNK", 7)


def grading(request_id: str) -> GradingRecord:
    return GradingRecord(f"g-{request_id}", request_id, NOW, "judge", GradingStatus.GRADED, 1, 0.5)


async def write_history(database: AsyncEngine) -> None:
    records: list[Record] = history(40)
    records += [energy(served_call("r2"), 3.0, None), grading("r3"), grading("r39")]
    await write(database, build_zoo(), records)


async def rows_of(database: AsyncEngine, table: Table) -> dict[str, dict[str, Any]]:
    """By key, with JSON as its text."""
    (key,) = table.primary_key.columns
    async with database.connect() as connection:
        found = (await connection.execute(select(table))).mappings()
        return {row[key.name]: _plain(row) for row in found}


def archived(folder: Path, table: Table) -> dict[str, dict[str, Any]]:
    (key,) = table.primary_key.columns
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / table.name).glob("*.parquet")):
        for row in pl.read_parquet(path).iter_rows(named=True):
            assert row[key.name] not in found, "archived twice"
            found[row[key.name]] = row
    return found


def _plain(row: Any) -> dict[str, Any]:
    return {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in row.items()
    }


async def everything(database: AsyncEngine, folder: Path) -> dict[str, dict[str, Any]]:
    return {
        table.name: await rows_of(database, table) | archived(folder, table) for table in PRUNED
    }


async def test_archive_and_log_together_are_what_the_log_was(
    database: AsyncEngine, database_url: str, tmp_path: Path, parts_of_fifty: None
) -> None:
    await write_history(database)
    before = await everything(database, tmp_path / "archive")
    found = await prune(database_url, CUT, tmp_path / "archive")
    assert await everything(database, tmp_path / "archive") == before
    for table in PRUNED:
        gone = archived(tmp_path / "archive", table)
        assert len(gone) == found.rows[table.name]
        assert not gone.keys() & (await rows_of(database, table)).keys()
    assert found.rows["requests"] == 30
    assert len(list((tmp_path / "archive" / "requests").glob("*.parquet"))) > 1


async def test_columns_are_those_of_the_tables(
    database: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    await write_history(database)
    await prune(database_url, CUT, tmp_path / "archive")
    for table in (requests, *ABOUT_REQUESTS):
        (path,) = (tmp_path / "archive" / table.name).glob("*.parquet")
        assert pl.read_parquet(path).columns == [column.name for column in table.columns]


async def test_nothing_is_left_of_unfinished_files(
    database: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    await write_history(database)
    await prune(database_url, CUT, tmp_path / "archive")
    files = [path for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    assert files
    assert {path.suffix for path in files} == {".parquet"}


class CutOffError(Exception):
    """The process is gone."""


STAGES = [("move_start", 1)] + [
    (stage, times) for stage in ("write", "check", "finish", "delete_some") for times in (1, 2, 3)
]


@pytest.mark.parametrize(("stage", "times"), STAGES)
async def test_a_run_that_is_cut_off_anywhere_is_finished_by_the_next(
    database: AsyncEngine,
    database_url: str,
    tmp_path: Path,
    parts_of_fifty: None,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    times: int,
) -> None:
    """Cut off after that step was done so many times."""
    await write_history(database)
    folder = tmp_path / "archive"
    before = await everything(database, folder)
    with monkeypatch.context() as patched:
        _cut_off_after(patched, stage, times)
        with pytest.raises(CutOffError):
            await prune(database_url, CUT, folder)
    assert await everything(database, folder) == before
    await prune(database_url, CUT + 5 * HOUR, folder)

    assert await everything(database, folder) == before
    assert len(await rows_of(database, PRUNED[0])) == 5
    assert await first_part(database, (await log.ends(database)).start) is None


def _cut_off_after(patched: pytest.MonkeyPatch, stage: str, times: int) -> None:
    owner: Any = {
        "move_start": prunes,
        "delete_some": pruning,
    }.get(stage, Archive)
    real, done = getattr(owner, stage), 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == times:
            raise CutOffError

    def crash(*arguments: Any) -> Any:
        result = real(*arguments)
        count()
        return result

    async def crash_later(*arguments: Any) -> Any:
        result = await real(*arguments)
        count()
        return result

    patched.setattr(owner, stage, crash if owner is Archive else crash_later)


async def test_nothing_is_deleted_where_a_file_does_not_hold_it(
    database: AsyncEngine, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_history(database)
    before = await everything(database, tmp_path)
    real = Archive.write
    with monkeypatch.context() as patched:
        patched.setattr(
            Archive, "write", lambda self, table, part, rows: real(self, table, part, rows[1:])
        )
        with pytest.raises(ArchiveError, match="lacks 1 of 30 rows"):
            await prune(database_url, CUT, tmp_path / "archive")
    assert await everything(database, tmp_path) == before
    await prune(database_url, CUT, tmp_path / "archive")
    assert await everything(database, tmp_path / "archive") == before


async def test_the_archive_of_another_database_is_never_taken_for_ones_own(
    database: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    """Where positions are the same, keys are not."""
    await write_history(database)
    other = history(40, prefix="other")
    archive = Archive(tmp_path / "archive")
    await prune(database_url, CUT, tmp_path / "archive")
    await log.append(database, other[:1])
    part = Part(0, (await log.ends(database)).start)
    with pytest.raises(ArchiveError, match="give one of this database alone"):
        archive.check(PRUNED[0], part, {"other1"})


async def test_a_folder_that_cannot_be_written_stops_before_anything_is_deleted(
    database: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    await write_history(database)
    before = await everything(database, tmp_path)
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(ArchiveError, match="cannot be written"):
        await prune(database_url, CUT, tmp_path / "archive")
    assert await everything(database, tmp_path) == before


async def test_two_prunes_do_not_run_at_once(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write_history(database)
    async with alone(database):
        with pytest.raises(BusyPruningError):
            await prune(database_url, CUT, None)
    assert (await prune(database_url, CUT, None)).rows["requests"] == 30


async def test_a_transaction_deletes_no_more_than_a_chunk(
    database: AsyncEngine, parts_of_fifty: None
) -> None:
    await write_history(database)
    deleted = await pruning.delete_some(database, Part(0, 50))
    assert len(await rows_of(database, PRUNED[0])) == 40 - 7
    assert deleted > 7
