"""Opening a database: its schema is the code's, and what cannot be opened is refused in words."""

import asyncio
import io
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.surface import NUMBERS
from litellm_messplus.routing.decision import Reason
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate, migrations_folder
from litellm_messplus.store.tables import metadata
from tests.support.builders import pair, request, traffic

SURFACE = ("surface", "surface_version")
IDENTITIES = ("key_alias", "user_id", "end_user", "tags")
HELD = ("conversation", "line", "prefix", "turn", "hold")
LATER = ("expected_t", "label_probability", "eligible", "gated_by", *HELD, *IDENTITIES)
"""Columns that came to the requests after their surfaces."""
HOLDING = {Reason.HELD, Reason.TROUBLE}
YOUNGER = {Reason.FORCED, Reason.NEWCOMER, Reason.UNSEEN_NEWCOMER, *HOLDING}
"""Reasons that no old log has."""
NUMBERED = "SELECT request_id, t, expected_t FROM requests ORDER BY position"


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
    async with asyncio.timeout(5.0):
        while any("_connection_worker" in each.name for each in threading.enumerate()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


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
def test_postgres_has_room_for_ids_that_others_make_as_long_as_they_like(
    table: str, column: str
) -> None:
    """LiteLLM takes call ids of 256 characters, and gives responses ids of 425 and more; Postgres
    refuses the whole row of one that is too long."""
    known = metadata.tables[table].c[column].type.compile(postgresql.dialect())  # type: ignore[no-untyped-call]
    sent = sent_to_postgres()
    widened = re.search(rf"ALTER TABLE {table} ALTER COLUMN {column} TYPE (.*);", sent)
    assert widened is not None
    assert known == widened[1] == "VARCHAR(1024)"


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


async def test_a_database_newer_than_the_code_is_refused(
    database: AsyncEngine, database_url: str
) -> None:
    async with database.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await database.dispose()
    error = await refusal(database_url)
    assert error.key == "messplus.database"
    assert error.given == database_url
    assert "9999" in error.allowed
    assert "upgrade litellm-messplus" in error.allowed
    async with database.connect() as connection:
        found = await connection.execute(text("SELECT version_num FROM alembic_version"))
        assert found.scalar_one() == "9999"


async def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/no/such/folder/messplus.db"
    error = await refusal(url)
    assert (error.key, error.given) == ("messplus.database", url)
    assert "unable to open database file" in error.allowed


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and no database. " * 100)
    error = await refusal(f"sqlite+aiosqlite:///{path}")
    assert error.key == "messplus.database"
    assert "not a database" in error.allowed
    assert path.read_text().startswith("These are notes")


@pytest.mark.parametrize("url", ["", "messplus.db", "not a url", "://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_engine(url)
    assert (caught.value.key, caught.value.given) == ("messplus.database", url)
    assert caught.value.allowed == "an SQLAlchemy URL"


@pytest.mark.parametrize(
    "url", ["sqlite:///messplus.db", "postgresql://host/db", "mysql+aiomysql://host/db"]
)
def test_another_driver_is_refused_with_those_that_are_allowed(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_engine(url)
    assert (caught.value.key, caught.value.given) == ("messplus.database", url)
    assert caught.value.allowed == "a URL of sqlite+aiosqlite or postgresql+asyncpg"


def test_a_refused_url_does_not_show_its_password() -> None:
    """The commonest slip is the driver, and the message goes to the operator's log."""
    with pytest.raises(ConfigurationError) as caught:
        create_engine("postgresql://me:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


async def revision_of(engine: AsyncEngine, revision: str) -> None:
    """Bring the database up or down to that migration."""

    def move(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(migrations_folder()))
        config.attributes["connection"] = connection
        current = MigrationContext.configure(connection).get_current_revision() or ""
        (command.upgrade if current < revision else command.downgrade)(config, revision)

    async with engine.begin() as connection:
        await connection.run_sync(move)


async def everything(database: AsyncEngine, query: str) -> list[dict[str, Any]]:
    async with database.connect() as connection:
        return [dict(row) for row in (await connection.execute(text(query))).mappings()]


def without_numbers(rows: list[dict[str, Any]]) -> None:
    """Take out the numbers that one worker expected, which were those that it got, the
    probabilities of draws, of which there were none, what the gates said, and who asked."""
    assert all(row.pop("expected_t") == row["t"] for row in rows)
    assert all(row.pop("label_probability") is None for row in rows)
    for row in rows:
        del row["eligible"], row["gated_by"]
        for name in (*IDENTITIES, *HELD):
            del row[name]


async def test_a_log_survives_the_migrations_up_and_down(database: AsyncEngine) -> None:
    """SQLite writes the table anew to let features be NULL: nothing may be lost on the way."""
    schema = "SELECT name, sql FROM sqlite_master WHERE type != 'table' ORDER BY name"
    before = await everything(database, schema)
    await log.append(database, traffic(20))
    await revision_of(database, "0002")
    old = await everything(database, "SELECT * FROM requests ORDER BY position")
    assert len(old) == 20
    assert "encode_seconds" not in old[0]

    await migrate(database)
    new = await everything(database, "SELECT * FROM requests ORDER BY position")
    added = ("encode_seconds", "encode_joules", *SURFACE, *LATER)
    assert new == [in_words(row, added) for row in old]
    assert len(await everything(database, "SELECT * FROM request_outcomes")) == 20
    assert await everything(database, schema) == before

    await log.append(database, [request("late", features=None)])
    await revision_of(database, "0002")
    assert len(await everything(database, "SELECT * FROM request_outcomes")) == 21
    (late,) = await everything(database, "SELECT * FROM requests WHERE request_id = 'late'")
    assert late["features"] == b""


async def test_joules_of_encoding_come_to_a_log_that_has_none_and_leave_it_again(
    database: AsyncEngine,
) -> None:
    everyone = "SELECT * FROM requests ORDER BY position"
    metered = request("metered", encode_joules=0.25, service_level="metered")
    await log.append(database, [*traffic(5), metered])
    new = await everything(database, everyone)
    without_numbers(new)
    await revision_of(database, "0005")
    old = await everything(database, everyone)
    await migrate(database)

    assert [row.pop("encode_joules") for row in new] == [None] * (len(new) - 1) + [0.25]
    added = ("encode_joules", *SURFACE, *LATER)
    assert await everything(database, everyone) == [in_words(row, added) for row in old]
    kept = [in_words(row) for row in old]
    assert [{name: row[name] for name in row if name not in SURFACE} for row in new] == kept
    assert len(await everything(database, "SELECT * FROM request_outcomes")) == len(old)


async def test_surfaces_come_to_a_log_that_has_none_and_leave_it_again(
    database: AsyncEngine,
) -> None:
    everyone = "SELECT * FROM requests ORDER BY position"
    seen = np.arange(len(NUMBERS), dtype=np.float32)
    second = request("seen", surface=seen, surface_version="surface-1", expected_t=2)
    await log.append(database, [request("unseen"), second])
    new = await everything(database, everyone)
    without_numbers(new)
    await revision_of(database, "0008")
    old = await everything(database, everyone)
    await migrate(database)

    kept = [tuple(row.pop(name) for name in SURFACE) for row in new]
    assert kept == [(None, None), (seen.tobytes(), "surface-1")]
    assert new == [in_words(row) for row in old]
    added = (*SURFACE, *LATER)
    assert await everything(database, everyone) == [in_words(row, added) for row in old]


async def test_sentences_become_reasons_and_reach_is_told_apart_from_them(
    database: AsyncEngine,
) -> None:
    """Also where a sentence that the features came too late stood before the other."""
    sentences = {
        "ahead of alpha": ("ahead", True),
        "no features in time: behind alpha": ("behind", True),
        "no candidate is expected to hold alpha: best value": ("out_of_reach", False),
        "no features in time: no candidate is expected to hold alpha: best value": (
            "out_of_reach",
            False,
        ),
        "no deployment is healthy: no candidate is expected to hold alpha: best value": (
            "none_healthy",
            False,
        ),
        "probe": ("probe", True),
        "probe beside the choice, unseen": ("unseen_probe", True),
        "no label has come yet: the largest": ("unlabelled", True),
        "first request": ("first_request", True),
        "exploration": ("exploration", True),
        "cheapest: no debt": ("no_debt", True),
        "least V*E - Q*s = 0.1*2 - 0.5*0.2500": ("least_penalty", True),
    }
    await log.append(
        database,
        [
            request(
                sentence, features=None if sentence.startswith("no features") else pair(1.0, 0.0)
            )
            for sentence in sentences
        ],
    )
    await revision_of(database, "0016")
    async with database.begin() as connection:
        await connection.execute(text("UPDATE requests SET reason = request_id"))
    await migrate(database)

    query = "SELECT reason, is_within_reach FROM requests ORDER BY position"
    found = [
        (row["reason"], bool(row["is_within_reach"])) for row in await everything(database, query)
    ]
    assert found == list(sentences.values())
    assert {reason for reason, _ in found} == set(Reason) - YOUNGER
    await revision_of(database, "0016")
    for row in await everything(database, "SELECT request_id, reason FROM requests"):
        assert row["request_id"].startswith(row["reason"])


def in_words(old: dict[str, Any], added: Sequence[str] = ()) -> dict[str, Any]:
    """The row of a log before the ``added`` columns, and before reasons were words."""
    reason = Reason.FIRST_REQUEST if old["reason"] == "first request" else old["reason"]
    return {**old, **dict.fromkeys(added), "reason": reason, "is_within_reach": 1}


async def test_numbers_that_workers_gave_twice_are_told_apart_and_kept(
    database: AsyncEngine,
) -> None:
    """Of a log from before they were unique; a log that one worker wrote stays as it is."""
    numbered = [request(name, expected_t=n) for n, name in enumerate("abcd", start=1)]
    await log.append(database, [*numbered, request("gold", service_level="gold")])
    await revision_of(database, "0014")
    async with database.begin() as connection:
        await connection.execute(text("UPDATE requests SET t = 2 WHERE request_id IN ('c', 'd')"))
    old = await everything(database, "SELECT * FROM requests ORDER BY position")
    await migrate(database)

    assert [tuple(row.values()) for row in await everything(database, NUMBERED)] == [
        *(("a", 1, None), ("b", 2, None), ("c", 3, 2), ("d", 4, 2), ("gold", 1, None)),
    ]
    await revision_of(database, "0014")
    assert await everything(database, "SELECT * FROM requests ORDER BY position") == old


async def test_a_number_that_is_taken_is_refused_by_the_database(database: AsyncEngine) -> None:
    await log.append(database, [request("a"), request("b")])
    async with database.connect() as connection:
        with pytest.raises(IntegrityError):
            await connection.execute(text("UPDATE requests SET t = 1 WHERE request_id = 'b'"))
