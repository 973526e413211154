"""Whether the database can be read at all: SQLite's own check of its file."""

from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.upkeep.finding import Finding, Outcome

CHECK = "file"
MOST = 20
"""Faults that SQLite lists before it stops looking."""
ADVICE = "restore the database from a backup, or move it away to begin anew"


async def check_file(database: AsyncEngine) -> Finding:
    """What `PRAGMA integrity_check` says. Postgres has no such check in SQL."""
    if database.dialect.name != "sqlite":
        told = "only a SQLite file is checked; for Postgres there is pg_amcheck"
        return Finding(CHECK, Outcome.SKIPPED, told)
    faults = await _faults(database)
    if not faults:
        return Finding(CHECK, Outcome.SOUND, "SQLite finds no fault in the file")
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return Finding(CHECK, Outcome.WRONG, f"the file is damaged: {faults[0]}{more}", ADVICE)


async def _faults(database: AsyncEngine) -> list[str]:
    try:
        async with database.connect() as connection:
            found = await connection.exec_driver_sql(f"PRAGMA integrity_check({MOST})")
            told = [" ".join(str(line).split()) for line in found.scalars()]
    except DatabaseError as error:
        if "malformed" not in str(error.orig) and "not a database" not in str(error.orig):
            raise
        return [str(error.orig)]
    return [] if told == ["ok"] else told
