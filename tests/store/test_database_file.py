"""A SQLite file that is deleted while it is open takes nothing any more: what is acknowledged is in
the file that the next start finds."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus import journal as module
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.status.alerts import failure_alerts
from litellm_messplus.store import log
from litellm_messplus.store.database import DatabaseFileGoneError
from tests.support.builders import label, request
from tests.support.folding import build_journal
from tests.support.patience import PATIENT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messplus.db"


def remove(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


@pytest.mark.parametrize("is_durable", [True, False])
async def test_nothing_is_written_into_a_file_that_was_deleted(
    database: AsyncEngine, path: Path, is_durable: bool
) -> None:
    await log.append(database, [request()], is_durable=is_durable)
    remove(path)
    with pytest.raises(DatabaseFileGoneError, match="was deleted while it was open"):
        await log.append(database, [label()], is_durable=is_durable)
    with pytest.raises(DatabaseFileGoneError):
        await log.head(database)


async def test_a_replaced_file_is_not_written_to(database: AsyncEngine, path: Path) -> None:
    await log.append(database, [request()])
    shutil.copy(path, path.with_suffix(".copy"))
    os.replace(path.with_suffix(".copy"), path)
    with pytest.raises(DatabaseFileGoneError, match="was replaced"):
        await log.append(database, [label()], is_durable=True)


async def test_a_connection_begins_no_empty_file_anew(database: AsyncEngine, path: Path) -> None:
    await log.append(database, [request()])
    async with database.connect():  # so that the next one needs a connection of its own
        remove(path)
        with pytest.raises(DatabaseFileGoneError):
            async with database.connect():
                pass


async def test_a_file_that_is_put_back_is_written_to_again(
    database: AsyncEngine, path: Path, tmp_path: Path
) -> None:
    await log.append(database, [request()])
    away = tmp_path / "away"
    away.mkdir()
    for each in list(path.parent.glob(f"{path.name}*")):
        each.rename(away / each.name)
    with pytest.raises(DatabaseFileGoneError):
        await log.append(database, [label()])
    for each in away.iterdir():
        each.rename(path.parent / each.name)
    await log.append(database, [label()], is_durable=True)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT label_id FROM labels").fetchall() == [("label-r1-0",)]


async def test_waiting_requests_get_an_error_and_it_is_counted_and_an_alert(
    database: AsyncEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    counters = Counters()
    journal = build_journal(database, counters=counters)
    journal.start()
    await journal.write_durably(request())
    remove(path)
    async with asyncio.timeout(PATIENT):
        with pytest.raises(DatabaseFileGoneError):
            await journal.write_durably(label())
    assert counters.as_dict()["database_file_gone"] >= 1
    (alert,) = failure_alerts(counters.as_dict())
    assert "database_file_gone" in alert["message"]
    await journal.close()
