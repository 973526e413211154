"""Opening the database at a start: away now or unusable, in words; and tried again from the
beginning."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import opening
from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.opening import open_database
from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.restore import restore
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError
from litellm_messplus.serving import inside as inside_module
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import database as store
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import is_away
from litellm_messplus.upkeep.verify import verify
from tests.support.builders import build_engine, build_zoo, label, request, served_call, traffic
from tests.support.folding import bits, fold_all, only_zoo
from tests.support.in_process import brain_of, inside
from tests.support.patience import PATIENT


class ServerError(Exception):
    """As asyncpg raises it where it connects."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("the server says no")
        self.sqlstate = sqlstate


def settings_of(url: str) -> MessplusSettings:
    return MessplusSettings.model_validate({"database": url, "zoos": {"zoo": {"alpha": 0.6}}})


def engines_of(engine: Engine) -> dict[str, Engine]:
    return dict(only_zoo(engine))


async def test_a_locked_database_is_away_and_read_when_it_is_free(
    database: AsyncEngine, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_MILLISECONDS", 50)
    await log.append(database, traffic(20))
    engine = build_engine()
    with closing(sqlite3.connect(tmp_path / "messplus.db")) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseAwayError, match="is locked"):
            await open_database(settings_of(database_url), engines_of(engine))
    position, _ = await open_database(settings_of(database_url), engines_of(engine))
    assert position == await log.head(database)
    assert bits(engine) == bits(await fold_all(database))


async def test_the_key_is_known_before_a_request(database: AsyncEngine, database_url: str) -> None:
    opened = await open_database(settings_of(database_url), engines_of(build_engine()))
    assert opened.conversation_key == await read_conversation_key(database)


async def test_a_database_that_comes_later_brings_the_key_with_the_zoos(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside_module, "RETRY_SECONDS", 0.0)
    settings, engines = settings_of(database_url), dict(engines_of(build_engine()))
    brain = Brain(settings, HashedNgrams(), engines, database)
    plugin = MessplusPlugin(inside(brain, settings))
    inside_module.join_later(plugin, brain, partial(open_database, settings, engines))
    began: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(brain.line_log, "begin", began.set_result)
    async with asyncio.timeout(PATIENT):
        assert await began == await read_conversation_key(database)
    assert brain_of(plugin.parts).engines == engines
    await plugin.close()


async def test_an_attempt_that_fails_half_way_leaves_nothing_behind(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(database, traffic(20))
    engine = build_engine()

    async def torn(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
        await restore(database, engines)
        raise OperationalError("SELECT", {}, Exception("database is locked"))

    monkeypatch.setattr(opening, "restore", torn)
    with pytest.raises(DatabaseAwayError):
        await open_database(settings_of(database_url), engines_of(engine))
    monkeypatch.setattr(opening, "restore", restore)
    await open_database(settings_of(database_url), engines_of(engine))
    assert bits(engine) == bits(await fold_all(database))


async def test_an_error_of_our_own_is_not_called_the_databases(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(*_: object) -> int:
        raise KeyError("a mistake in the code")

    monkeypatch.setattr(opening, "restore", wrong)
    with pytest.raises(KeyError):
        await open_database(settings_of(database_url), engines_of(build_engine()))


async def test_a_log_without_head_is_refused(database: AsyncEngine, database_url: str) -> None:
    async with database.begin() as connection:
        await connection.exec_driver_sql("DELETE FROM log_head")
    with pytest.raises(ConfigurationError, match="log_head is empty") as refused:
        await open_database(settings_of(database_url), engines_of(build_engine()))
    assert not isinstance(refused.value, DatabaseAwayError)


async def test_a_head_behind_the_log_is_moved_up_to_it_and_nothing_is_dropped(
    database: AsyncEngine, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await log.append(database, traffic(20))
    engine, head = build_engine(), await log.head(database)
    async with database.begin() as connection:
        await connection.exec_driver_sql("UPDATE log_head SET position = position - 12")

    opened = await open_database(settings_of(database_url), engines_of(engine))

    assert opened.position == await log.head(database) == head
    assert f"ends at {head - 12}, and it has newer records" in caplog.text
    assert bits(engine) == bits(await fold_all(database))
    await log.append(database, [request("new"), served_call("new"), label("new")])
    assert (await verify(database_url)).faults == ()


async def test_a_head_that_is_right_stays(database: AsyncEngine) -> None:
    assert await log.mend_head(database) is None
    await log.append(database, traffic(5))
    head = await log.head(database)
    assert await log.mend_head(database) is None
    assert await log.head(database) == head


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (ServerError("57P03"), True),
        (ServerError("53300"), True),
        (ServerError("28P01"), False),
        (ServerError("3D000"), False),
        (OperationalError("SELECT", {}, Exception("database is locked")), True),
        (OperationalError("SELECT", {}, Exception("unable to open database file")), False),
    ],
    ids=["refused", "slow", "starting", "full", "password", "no such one", "locked", "no folder"],
)
def test_what_may_come_back_is_away(error: Exception, expected: bool) -> None:
    assert is_away(error) is expected


async def test_changed_settings_keep_their_state(database: AsyncEngine, database_url: str) -> None:
    await log.append(database, traffic(20))
    engine, other = build_engine(), build_engine(build_zoo(labels={"precedence": ["judge"]}))
    for each in (engine, other):
        position, _ = await open_database(settings_of(database_url), engines_of(each))
        settings = snapshot.fingerprint(each.zoo, each.encoder.name)
        kept = await snapshots.newest(database, "zoo", settings)
        assert kept is not None
        assert (kept.position, kept.state) == (position, bits(each))
        assert await snapshots.newest(database, "zoo", "other settings") is None
