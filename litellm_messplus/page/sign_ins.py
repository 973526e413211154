"""Access to the page without a key: one-time codes, and the sessions that they open.

Both are random and kept as hashes, in the database: any worker may get the next request, and a
reader of the database learns neither.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.tables import page_sign_ins

BYTES = 32
"""Bytes of randomness: too many to guess."""


class Kind(StrEnum):
    """The kinds of a token."""

    CODE = "code"
    SESSION = "session"


LASTS = {Kind.CODE: timedelta(minutes=5), Kind.SESSION: timedelta(hours=12)}
MOST = {Kind.CODE: 20, Kind.SESSION: 200}
"""Most tokens of each kind; beyond that, the oldest are deleted."""


def _now() -> datetime:
    return datetime.now(UTC)


class SignIns:
    """The sign-ins of one database, for all workers on it."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], datetime] = _now) -> None:
        self._database = database
        self._clock = clock

    async def new(self, kind: Kind) -> str:
        """Create a short-lived code that opens one session, or a session for a client that has
        shown a key."""
        token = secrets.token_urlsafe(BYTES)
        row = {
            "token_hash": _hash(token),
            "kind": kind.value,
            "expires_at": self._clock() + LASTS[kind],
        }
        async with self._database.begin() as connection:
            await self._forget(connection, kind)
            await connection.execute(insert(page_sign_ins), row)
        return token

    async def redeem(self, code: str) -> str | None:
        """Open a session for a code, which is then used up; None if the code is invalid.

        An unknown code takes no lock of the database, because anybody may try.
        """
        if not await self._holds(code, Kind.CODE):
            return None
        async with self._database.begin() as connection:
            of = page_sign_ins.c
            used = await connection.execute(
                delete(page_sign_ins).where(of.token_hash == _hash(code), of.kind == Kind.CODE)
            )
            if used.rowcount != 1:  # another request was faster
                return None
        return await self.new(Kind.SESSION)

    async def is_open(self, session: str) -> bool:
        """Tell whether the session exists and has not ended."""
        return await self._holds(session, Kind.SESSION)

    async def end(self, session: str) -> None:
        """End a session."""
        if not await self.is_open(session):
            return
        async with self._database.begin() as connection:
            await connection.execute(
                delete(page_sign_ins).where(page_sign_ins.c.token_hash == _hash(session))
            )

    async def _holds(self, token: str, kind: Kind) -> bool:
        of = page_sign_ins.c
        query = select(of.kind).where(
            of.token_hash == _hash(token), of.kind == kind, of.expires_at > self._clock()
        )
        async with self._database.connect() as connection:
            return (await connection.execute(query)).first() is not None

    async def _forget(self, connection: AsyncConnection, kind: Kind) -> None:
        """Delete expired tokens, and the oldest if there is no room for one more."""
        of = page_sign_ins.c
        await connection.execute(delete(page_sign_ins).where(of.expires_at <= self._clock()))
        kept = (
            select(of.token_hash)
            .where(of.kind == kind)
            .order_by(of.expires_at.desc())
            .limit(MOST[kind] - 1)
        )
        names = list((await connection.execute(kept)).scalars())
        await connection.execute(
            delete(page_sign_ins).where(of.kind == kind, of.token_hash.not_in(names))
        )


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
