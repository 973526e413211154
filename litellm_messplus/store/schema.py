"""The check of a database's schema: which migrations created it, and with which text.

The number of a migration does not identify its content: a checkout may have had another text under
the same number. So the database keeps the digest of each applied migration, and the version that
applied it. The actual tables are compared too, one by one: a backup may have been restored in part.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Row, delete, insert, select

from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.loading import version
from litellm_messplus.store.tables import metadata, schema_history

# The migrations of this code.


def migrations_config() -> Config:
    """Build Alembic's configuration for this code's migrations."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def migrations_folder() -> Path:
    """Find `migrations/`: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def digests() -> dict[str, str]:
    """Return the SHA-256 of the text of each migration by its number, oldest first."""
    return _digests(migrations_folder())


@cache
def _digests(folder: Path) -> dict[str, str]:
    scripts = reversed(list(ScriptDirectory(folder).walk_revisions()))
    texts = {script.revision: Path(script.path).read_text("utf-8") for script in scripts}
    return {number: hashlib.sha256(text.encode()).hexdigest() for number, text in texts.items()}


def newest() -> str:
    """Return the number of the newest migration."""
    return list(digests())[-1]


# The migrations recorded in a database.

WHAT_TO_DO = (
    "go on with the version that wrote it, restore a backup that this version wrote, or export it "
    "with that version (`messplus prune --before DATE --to FOLDER`), begin with a new database "
    "and import into it (`messplus import --lessons FOLDER --zoo ZOO`; docs/upgrade.md)"
)


class OtherSchemaError(MessplusError):
    """A database whose tables or views differ from this code's; the message states which version
    made them, if known, and what to do."""


def revision(connection: Connection) -> str | None:
    """Return the number of the newest migration of a database; None if it has none.

    Raises OtherSchemaError if this code lacks that migration, or has another text for any migration
    of the database.
    """
    found = MigrationContext.configure(connection).get_current_revision()
    known, applied = digests(), _applied(connection)
    if found is not None and found not in known:
        raise OtherSchemaError(
            f"its revision {found} is not known here; {_by(applied.get(found))}; {WHAT_TO_DO}"
        )
    for row in applied.values():
        if row.digest != known.get(row.revision):
            raise OtherSchemaError(
                f"its migration {row.revision} is another one than here; {_by(row)}; {WHAT_TO_DO}"
            )
    return found


def settle(connection: Connection, before: str | None) -> None:
    """End a migration that began at the revision ``before``: compare the tables with the code's
    unless the database is new, and record which migrations it now has.

    Raises OtherSchemaError if they differ: the transaction must not be committed.
    """
    now = MigrationContext.configure(connection).get_current_revision()
    if now == newest() and before is not None:
        _compare(connection, before)
    _note(connection, now)


def startable(connection: Connection) -> str | None:
    """Return what ``revision`` does, and raise OtherSchemaError also if the tables themselves
    differ, as a start would."""
    found = revision(connection)
    if found == newest():
        _compare(connection, found)
    return found


def _compare(connection: Connection, wrote: str) -> None:
    found = differences(connection)
    if found:
        who = _by(_applied(connection).get(wrote))
        raise OtherSchemaError(f"{'; '.join(found[:SHOWN])}; {who}; {WHAT_TO_DO}")


def _applied(connection: Connection) -> dict[str, Row[Any]]:
    if not connection.dialect.has_table(connection, schema_history.name):
        return {}
    return {row.revision: row for row in connection.execute(select(schema_history))}


def _by(row: Row[Any] | None) -> str:
    if row is None:
        return "it is a newer version's, or that of a checkout from before the first release"
    return f"litellm-messplus {row.version} applied it on {row.applied_at:%Y-%m-%d}"


def _note(connection: Connection, now: str | None) -> None:
    if not connection.dialect.has_table(connection, schema_history.name):
        return
    noted = _applied(connection)
    there = {number: digest for number, digest in digests().items() if now and number <= now}
    undone = schema_history.c.revision.in_(noted.keys() - there)
    connection.execute(delete(schema_history).where(undone))
    added = [
        {
            "revision": number,
            "digest": digest,
            "version": version(),
            "applied_at": datetime.now(UTC),
        }
        for number, digest in there.items()
        if number not in noted
    ]
    if added:
        connection.execute(insert(schema_history), added)


# The tables themselves, compared with the code's: their columns, types, NULL and indexes.

SHOWN = 3
"""The most differences that a message names."""
TEXTS = {"add": "it lacks the", "remove": "it has an unknown", "modify": "it has another"}


def differences(connection: Connection) -> list[str]:
    """List the tables, columns and indexes in which the database differs from the code. Tables
    unknown to the code belong to another program."""
    context = MigrationContext.configure(connection, opts={"include_name": _is_own})
    return [_text(change) for change in _flat(compare_metadata(context, metadata))]


def _is_own(name: str | None, kind: str, parents: Any) -> bool:
    return kind != "table" or name in metadata.tables


def _flat(changes: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the changes one by one, except changes of comments, which affect no query."""
    for change in changes:
        if isinstance(change, list):
            yield from _flat(change)
        elif not change[0].endswith("comment"):
            yield change


def _text(change: tuple[Any, ...]) -> str:
    verb, _, what = change[0].partition("_")
    if what == "column":
        name = f"{change[2]}.{change[3].name}"
    elif verb == "modify":
        name = f"of {change[2]}.{change[3]}"
    else:
        name = change[1].name
    return f"{TEXTS[verb]} {what} {name}"
