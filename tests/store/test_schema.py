"""A start goes on with a database only where the migrations that made it are this code's, word for
word; and a migration that has been published is never edited."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.loading import version
from litellm_messplus.store import schema
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.reading import OtherVersionError, reading, revision_of
from litellm_messplus.store.rows import row_of
from litellm_messplus.store.tables import requests
from tests.support.builders import request
from tests.support.earlier_checkouts import made, migrations_of, refusal, replace
from tests.support.patience import PATIENT

MIGRATIONS = schema.migrations_folder()
HASHES = MIGRATIONS / "hashes.txt"
FIRST = "a538b33a6bba07d2fca37c4bc1cbb7a45176450f4bbb8005f0ae2695fe2d6ec7  versions/0001_schema.py"
"""The line that stays for good: databases of this schema are in use."""
LATER = ("as_of", "in_flight", "inputs", "asked", "granted")
"""The columns of requests that came with later migrations."""
TO_ADD = (
    "A database remembers which migrations made it, and a start refuses any other. Undo the edit, "
    "and write a new migration. A new one gets its line once, in the commit that brings it: "
    "cd migrations && sha256sum versions/NUMBER_NAME.py >> hashes.txt"
)


def lines(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        digest, name = line.split()
        yield name, digest


async def rows(database: AsyncEngine, query: str) -> list[tuple[object, ...]]:
    async with database.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


def test_no_migration_is_edited_once_its_hash_is_in_the_list() -> None:
    files = sorted((MIGRATIONS / "versions").glob("*.py"))
    found = {
        f"versions/{each.name}": hashlib.sha256(each.read_bytes()).hexdigest() for each in files
    }

    assert dict(lines(HASHES)) == found, TO_ADD


def test_the_list_of_hashes_only_grows() -> None:
    """By every commit of this checkout since the first migration got its last text."""
    assert HASHES.read_text().startswith(FIRST), TO_ADD
    git = ["git", "-C", str(MIGRATIONS.parent)]
    if not (MIGRATIONS.parent / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no checkout, or no git: the history of the list is not here")

    def output_of(*command: str) -> str:
        return subprocess.run([*git, *command], check=True, capture_output=True, text=True).stdout

    now = set(HASHES.read_text().splitlines())
    for commit in output_of("log", "--format=%H", "--", "migrations/hashes.txt").split():
        then = output_of("show", f"{commit}:migrations/hashes.txt")
        if then.startswith(FIRST):
            assert set(then.splitlines()) <= now, TO_ADD


async def test_a_database_says_which_migrations_made_it(database: AsyncEngine) -> None:
    noted = await rows(database, "SELECT revision, digest, version FROM schema_history")

    assert sorted(noted) == [
        (name.removeprefix("versions/")[:4], digest, version()) for name, digest in lines(HASHES)
    ]


async def test_a_database_of_an_earlier_development_is_refused_with_how_to_export_it(
    database_url: str,
) -> None:
    """It had more migrations, and the last of them noted who applied it."""
    await made(database_url)
    engine = create_engine(database_url)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
        await connection.execute(
            text(
                "UPDATE schema_history SET revision = '0099', digest = 'old', version = '0.1.0' "
                "WHERE revision = :newest"
            ),
            {"newest": schema.newest()},
        )
    before = await rows(engine, "SELECT * FROM schema_history")

    refused = await refusal(database_url)

    assert "its revision 0099 is not known here; litellm-messplus 0.1.0 applied it on" in refused
    assert "`messplus prune --before DATE --to FOLDER`" in refused
    assert "`messplus import --lessons FOLDER --zoo ZOO`; docs/upgrade.md" in refused
    assert await rows(engine, "SELECT * FROM schema_history") == before
    await engine.dispose()


async def test_a_migration_that_leads_to_other_tables_than_the_codes_is_undone(
    database_url: str, tmp_path: Path
) -> None:
    await made(database_url)
    ours = schema.newest()
    with migrations_of(tmp_path) as migrations:
        newer = migrations / "versions" / "9999_newer.py"
        newer.write_text(
            f'from alembic import op\n\nrevision = "9999"\ndown_revision = "{ours}"\n\n\n'
            'def upgrade() -> None:\n    op.drop_index("ix_requests_session", "requests")\n'
        )
        refused = await refusal(database_url)

    assert "lacks the index ix_requests_session" in refused
    engine = create_engine(database_url)
    assert await rows(engine, "SELECT version_num FROM alembic_version") == [(ours,)]
    await engine.dispose()


async def test_a_view_that_another_text_of_a_migration_made_is_refused_with_who_made_it(
    database_url: str, tmp_path: Path
) -> None:
    with migrations_of(tmp_path) as migrations:
        views = migrations / "versions" / "0001_schema.py"
        replace(views, "HAVING SUM(compared) > 0", "HAVING SUM(compared) > 1")
        await made(database_url)

    refused = await refusal(database_url)

    assert f"its migration 0001 is another one than here; litellm-messplus {version()}" in refused
    with pytest.raises(OtherVersionError, match="migration 0001 is another one"):
        async with reading(database_url):
            pass


async def test_a_newer_database_is_refused_with_the_version_that_wrote_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = schema.newest()
    with migrations_of(tmp_path) as migrations, monkeypatch.context() as later:
        newer = migrations / "versions" / "9999_newer.py"
        newer.write_text(
            f'revision = "9999"\ndown_revision = "{ours}"\n\n\ndef upgrade() -> None: ...\n'
        )
        later.setattr(schema, "version", lambda: "7.0.0")
        await made(database_url)

    assert "revision 9999 is not known here; litellm-messplus 7.0.0 applied it" in await refusal(
        database_url
    )


async def test_tables_of_another_program_in_the_same_database_are_none_of_ours(
    database: AsyncEngine,
) -> None:
    async with database.begin() as connection:
        await connection.execute(text('CREATE TABLE "LiteLLM_SpendLogs" (request_id TEXT)'))
        assert await connection.run_sync(schema.differences) == []


async def test_a_start_refuses_tables_that_were_changed_since_and_says_who_made_them(
    database: AsyncEngine, database_url: str
) -> None:
    """As a backup that was put back in part leaves them."""
    async with database.begin() as connection:
        await connection.execute(text("DROP TABLE lessons"))
    before = await rows(database, "SELECT * FROM schema_history")

    refused = await refusal(database_url)

    assert "it lacks the table lessons;" in refused
    assert f"litellm-messplus {version()} applied it on" in refused
    assert "restore a backup" in refused
    with pytest.raises(OtherVersionError, match="lacks the table lessons"):
        await revision_of(database_url, PATIENT)  # as `messplus check` does
    async with reading(database_url):  # as `messplus verify` does, which says what is wrong
        pass
    assert await rows(database, "SELECT * FROM schema_history") == before


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ("DROP INDEX ix_labels_created_at", "it lacks the index ix_labels_created_at"),
        ("ALTER TABLE labels ADD COLUMN mood TEXT", "it has an unknown column labels.mood"),
        ("DROP TABLE lessons", "it lacks the table lessons"),
    ],
)
async def test_what_was_changed_by_hand_is_named(
    database: AsyncEngine, change: str, difference: str
) -> None:
    async with database.begin() as connection:
        await connection.execute(text(change))
        assert difference in await connection.run_sync(schema.differences)


async def test_another_type_and_another_rule_for_null_are_named(
    database_url: str, tmp_path: Path
) -> None:
    with migrations_of(tmp_path) as migrations:
        tables = migrations / "versions" / "0001_schema.py"
        replace(tables, "value float, weight float, comment", "value text, weight float?, comment")
        await made(database_url)

    engine = create_engine(database_url)
    async with engine.connect() as connection:
        found = await connection.run_sync(schema.differences)
    await engine.dispose()
    assert "it has another type of labels.value" in found
    assert "it has another nullable of labels.weight" in found


async def test_a_database_of_the_first_release_is_upgraded_and_keeps_its_requests(
    database_url: str, tmp_path: Path
) -> None:
    with migrations_of(tmp_path) as migrations:
        for later in (migrations / "versions").glob("*.py"):
            if not later.name.startswith("0001"):
                later.unlink()
        await made(database_url)
    engine = create_engine(database_url)
    row = row_of(request("r1", chosen="small"), 1)
    async with engine.begin() as connection:
        first = {name: each for name, each in row.items() if name not in LATER}
        await connection.execute(insert(requests).values(first))

    await migrate(engine)

    found = await rows(engine, f"SELECT chosen, {', '.join(LATER)} FROM requests")
    assert found == [("small", *[None] * len(LATER))]
    noted = await rows(engine, "SELECT revision FROM schema_history ORDER BY revision")
    assert [revision for (revision,) in noted] == list(schema.digests())
    async with engine.connect() as connection:
        assert await connection.run_sync(schema.differences) == []
    await engine.dispose()


async def test_migrating_again_notes_nothing_twice(database: AsyncEngine) -> None:
    before = await rows(database, "SELECT * FROM schema_history")
    await migrate(database)

    assert await rows(database, "SELECT * FROM schema_history") == before
