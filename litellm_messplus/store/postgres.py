"""Connections to Postgres: the options of a URL, and a pooler that stands before it.

Clouds give URLs as libpq and Prisma write them: `?sslmode=require`, `?pgbouncer=true`. SQLAlchemy
hands every option to asyncpg's `connect` as an argument by its name, which raises TypeError for
most of them, and for numbers, since they arrive as text. So each is checked here, before anything
connects, and handed over as asyncpg wants it:

- what libpq knows, as a part of asyncpg's `dsn`, which it reads as libpq does: certificates, and
  settings of the session such as `application_name`
- numbers as numbers, under asyncpg's and SQLAlchemy's names
- what asyncpg does not have (`channel_binding`, `gssencmode`) is left out where that is allowed,
  and refused where it is required

A pooler such as PgBouncer may serve each transaction from another session of Postgres. It is
recognised by the first connection of a process to a URL: the process that Postgres says it is
differs from the one that took the connection. Then nothing is prepared, by SQLAlchemy or asyncpg:
a prepared statement belongs to the session that was asked for it, and another session does not
know it, or knows another one under its name. What else a session keeps is not used: the learner's
lock is that of a transaction (`learning/lease.py`), and nobody listens for notices.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import URL
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

from litellm_messplus.runtime.errors import ConfigurationError

SETTING = "messplus.database"
TEXT, NUMBER, FILE = "a text", "a number", "a file that can be read"
SSL = "disable, allow, prefer, require, verify-ca, verify-full"
KINDS = {
    TEXT: "application_name database gsslib host krbsrvname options password port service "
    "ssl_max_protocol_version ssl_min_protocol_version sslpassword user",
    NUMBER: "command_timeout connect_timeout max_cacheable_statement_size "
    "max_cached_statement_lifetime prepared_statement_cache_size statement_cache_size timeout",
    FILE: "passfile sslcert sslcrl sslkey sslrootcert",
    "disable, prefer": "channel_binding gssencmode",  # asyncpg has neither
    SSL: "ssl sslmode",
    "any, primary, standby, read-write, read-only, prefer-standby": "target_session_attrs",
    "true, false": "pgbouncer",
}
OPTIONS = {option: kind for kind, options in KINDS.items() for option in options.split()}
"""What each may be: one of these words, if it is not a text, number or file. All are known to
asyncpg since 0.29; libpq's others (`keepalives`, `sslnegotiation`) would be sent to Postgres as
settings of the session, which it refuses in words that do not show where they came from.
"""
KEPT = frozenset({"database", "host", "password", "port", "user"})
"""The options that SQLAlchemy hands over as they are."""
UNSENT = KEPT | {"channel_binding", "gssencmode", "pgbouncer"}
RENAMED = {"connect_timeout": "timeout", "ssl": "sslmode"}


def arguments_of(url: URL) -> dict[str, Any]:
    """Return the arguments of a connection that the options of a URL ask for. Raises
    ConfigurationError for the first that cannot be honoured."""
    dsn: dict[str, str] = {}
    arguments: dict[str, Any] = {}
    for option, (*_, value) in url.normalized_query.items():
        name, kind = RENAMED.get(option, option), OPTIONS.get(option)
        if not _is(kind, value):
            allowed = f"`{option}` as {kind}" if kind else f"options of {', '.join(OPTIONS)}"
            raise ConfigurationError(f"{SETTING}?{option}", value, allowed)
        if kind is NUMBER:  # no limit of time is written as 0, and given as None
            arguments[name] = int(value) or (None if name.endswith("timeout") else 0)
        elif option not in UNSENT:
            dsn[name] = value
    root = os.environ.get("PGSSLROOTCERT") or Path.home() / ".postgresql/root.crt"
    if dsn.get("sslmode", "").startswith("verify") and not _is(FILE, dsn.get("sslrootcert", root)):
        allowed = f"require, or `sslrootcert` next to it, or the file {root}"
        raise ConfigurationError(f"{SETTING}?sslmode", dsn["sslmode"], allowed)
    return {**arguments, **({"dsn": f"postgresql://?{urlencode(dsn)}"} if dsn else {})}


def _is(kind: str | None, value: str | Path) -> bool:
    if kind is NUMBER:
        return str(value).isdecimal()
    if kind is FILE:
        return os.access(value, os.R_OK)
    return kind is TEXT or value in (kind or "").split(", ")


# A pooler before Postgres.

UNPREPARED: dict[str, Any] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": str,  # an empty name: parsed anew with each use
}
"""The arguments of a connection whose statements may each reach another session."""
_POOLED: dict[URL, bool] = {}
"""Whether a pooler answers at a URL, as the first connection of this process has found."""


def is_pooled(database: AsyncEngine) -> bool:
    """Tell whether a pooler has answered in place of Postgres."""
    return _POOLED.get(database.url, False)


def connect(
    url: URL,
    arguments: dict[str, Any],
    dialect: Dialect,
    *given: Any,
) -> DBAPIConnection | None:
    """Replace the options of a URL by asyncpg's arguments, and open the connection if it is one to
    a pooler."""
    _, positional, keywords = given
    for option in url.query.keys() - KEPT:
        keywords.pop(option, None)
    keywords.update(arguments)
    if "pgbouncer" in url.query:
        _POOLED[url] = "true" in url.query["pgbouncer"]
    if _POOLED.get(url, True):
        connection = dialect.connect(*positional, **{**keywords, **UNPREPARED})
        if url not in _POOLED:
            _POOLED[url] = await_only(_is_another_session(connection.driver_connection))
        if _POOLED[url]:
            return connection
        connection.close()
    return None


async def _is_another_session(driver: Any) -> bool:
    """Tell whether statements reach another session than the one that took the connection."""
    async with driver.transaction():
        reached = await driver.fetchval("SELECT pg_backend_pid()")
    return bool(reached != driver.get_server_pid())
