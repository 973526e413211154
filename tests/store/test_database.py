"""Opening a database: its schema is the code's, and what cannot be opened is refused in words."""

import asyncio
import io
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.schema import migrations_folder
from litellm_messplus.store.tables import log_head, metadata
from tests.support.builders import request
from tests.support.patience import until_it_holds


async def refusal(url: str) -> ConfigurationError:
    engine = create_engine(url)
    try:
        with pytest.raises(ConfigurationError) as caught:
            await migrate(engine)
    finally:
        await engine.dispose()
        await workers_ended()
    return caught.value


async def workers_ended() -> None:
    """SQLAlchemy does not wait for a broken connection's thread, which reports to this loop."""
    await until_it_holds(
        lambda: not any("_connection_worker" in each.name for each in threading.enumerate())
    )


async def test_the_migrations_make_exactly_the_tables_of_the_code(database: AsyncEngine) -> None:
    def difference(connection: Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    async with database.connect() as connection:
        assert await connection.run_sync(difference) == []


async def test_every_table_of_the_database_is_known_to_the_code(database: AsyncEngine) -> None:
    def names(connection: Connection) -> set[str]:
        return set(inspect(connection).get_table_names())

    async with database.connect() as connection:
        assert await connection.run_sync(names) == {*metadata.tables, "alembic_version"}


def test_every_table_and_column_says_what_it_holds() -> None:
    for table in metadata.tables.values():
        assert table.comment, table.name
        for column in table.columns:
            assert column.comment, f"{table.name}.{column.name}"


def sent_to_postgres() -> str:
    """The SQL of every migration up to this code's version."""
    buffer = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": buffer}
    )
    with Operations.context(context):
        for script in reversed(list(ScriptDirectory(str(migrations_folder())).walk_revisions())):
            script.module.upgrade()
    return buffer.getvalue()


def test_the_database_gets_the_same_comments_as_the_code() -> None:
    """SQLite keeps no comments, so this reads what the migrations would send to Postgres."""
    sent = dict(re.findall(r"COMMENT ON \w+ ([\w.]+) IS '((?:[^']|'')*)'", sent_to_postgres()))
    known: dict[str, str | None] = {table.name: table.comment for table in metadata.sorted_tables}
    for table in metadata.sorted_tables:
        known |= {f"{table.name}.{column.name}": column.comment for column in table.columns}
    assert {name: comment.replace("''", "'") for name, comment in sent.items()} == known


@pytest.mark.parametrize(
    ("table", "column"), [("requests", "litellm_call_id"), ("calls", "response_id")]
)
def test_postgres_has_room_for_ids_as_long_as_they_like(table: str, column: str) -> None:
    """LiteLLM takes call ids of 256 characters, and gives responses ids of 425 and more; Postgres
    refuses the whole row of one that is too long."""
    known = metadata.tables[table].c[column].type.compile(postgresql.dialect())  # type: ignore[no-untyped-call]
    made = re.search(rf"CREATE TABLE {table} \(.*?\n\);", sent_to_postgres(), re.DOTALL)
    assert made is not None
    assert known == "VARCHAR(1024)"
    assert re.search(rf"\b{column} VARCHAR\(1024\)", made[0])


async def test_migrating_again_changes_nothing(database: AsyncEngine) -> None:
    async with database.begin() as connection:
        await connection.execute(text("UPDATE log_head SET position = 7"))
    await migrate(database)
    async with database.connect() as connection:
        assert (await connection.execute(text("SELECT position FROM log_head"))).all() == [(7,)]


async def test_workers_that_start_together_take_turns(database_url: str) -> None:
    engines = [create_engine(database_url) for _ in range(4)]
    await asyncio.gather(*(migrate(engine) for engine in engines))
    async with engines[0].connect() as connection:
        assert (await connection.execute(text("SELECT id, position FROM log_head"))).all() == [
            (1, 0)
        ]
    for engine in engines:
        await engine.dispose()


async def test_a_commit_never_corrupts_and_readers_do_not_wait(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        assert (
            await connection.execute(text("PRAGMA synchronous"))
        ).scalar_one() == 1  # NORMAL, safe in WAL mode
        assert (await connection.execute(text("PRAGMA journal_mode"))).scalar_one() == "wal"


async def test_a_newer_database_is_refused(database: AsyncEngine, database_url: str) -> None:
    async with database.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await database.dispose()
    error = await refusal(database_url)
    assert error.key == "messplus.database"
    assert error.given == database_url
    assert "9999" in error.allowed
    assert "go on with the version that wrote it" in error.allowed
    async with database.connect() as connection:
        found = await connection.execute(text("SELECT version_num FROM alembic_version"))
        assert found.scalar_one() == "9999"


async def test_what_cannot_be_opened_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("These are notes, and no database. " * 100)
    reasons = {"no/such/folder/messplus.db": "unable to open", "notes.txt": "not a database"}
    for path, reason in reasons.items():
        error = await refusal(url := f"sqlite+aiosqlite:///{tmp_path}/{path}")
        assert (error.key, error.given) == ("messplus.database", url)
        assert reason in error.allowed
    assert notes.read_text().startswith("These are notes")


NO_URL = ("", "messplus.db", "not a url", "://")
OTHER_DRIVERS = ("sqlite:///messplus.db", "postgresql+psycopg://h/db", "mysql+aiomysql://host/db")
IN_MEMORY = (
    *("sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:"),
    *("sqlite+aiosqlite:///file::memory:?uri=true", "sqlite+aiosqlite:///file:x?mode=memory"),
)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        *((url, "an SQLAlchemy URL") for url in NO_URL),
        *((url, "a URL of sqlite+aiosqlite or postgresql+asyncpg") for url in OTHER_DRIVERS),
        *((url, "a file: each connection would have a memory of its own") for url in IN_MEMORY),
    ],
)
def test_a_url_of_no_database_that_lasts_is_refused(url: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_engine(url)
    assert (caught.value.key, caught.value.given) == ("messplus.database", url)
    assert caught.value.allowed.startswith(allowed)


def test_a_missing_driver_is_refused_with_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ConfigurationError) as caught:
        create_engine("postgresql+asyncpg://me:hunter2@host/db")
    assert caught.value.key == "messplus.database"
    assert "pip install 'litellm-messplus[postgres]'" in caught.value.allowed
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["me:hunter@2@h/db", "h/db?user=me&password=hunter2"])
def test_a_refused_url_does_not_show_its_password(url: str) -> None:
    """The message goes to the operator's log."""
    with pytest.raises(ConfigurationError) as caught:
        create_engine(f"postgresql+psycopg://{url}")
    assert "hunter" not in str(caught.value)


async def test_every_history_has_a_key_of_its_own(database: AsyncEngine, tmp_path: Path) -> None:
    """By which prompts are digested: who knows one cannot guess another history's."""
    another = create_engine(f"sqlite+aiosqlite:///{tmp_path}/another.db")
    await migrate(another)
    drawn = set()
    for engine in (database, another):
        async with engine.connect() as connection:
            drawn.add((await connection.execute(select(log_head.c.conversation_key))).scalar_one())
    await another.dispose()

    assert len(drawn) == 2


async def test_a_number_that_is_taken_is_refused_by_the_database(database: AsyncEngine) -> None:
    await log.append(database, [request("a"), request("b")])
    async with database.connect() as connection:
        with pytest.raises(IntegrityError):
            await connection.execute(text("UPDATE requests SET t = 1 WHERE request_id = 'b'"))
