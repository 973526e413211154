"""Erasing what says whose requests are, and what was in them: their rows stay, as anybody's.

The fold reads some of it: the features and the surface of a prompt, from which a label teaches. So
a request is erased where the base of its zoo stands for all that is logged about it, and no fold
reads its rows again. What comes later finds no features, whoever reads it and whenever.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store import log
from litellm_messplus.store.pruning import are_kept
from litellm_messplus.store.snapshots import Base, replace_bases
from litellm_messplus.store.tables import calls, gradings, labels, requests

CHUNK = 100
"""Requests erased in one transaction: labels wait for it."""
ERASED = {
    requests: {
        **dict.fromkeys(("key_hash", "key_alias", "team_id", "user_id", "end_user", "tags")),
        **dict.fromkeys(("prompt", "features", "surface", "surface_version")),
        **dict.fromkeys(("prefix", "session", "conversation_draw")),
        "litellm_call_id": requests.c.request_id,
    },
    calls: dict.fromkeys(("response_id", "error", "answer")),
    labels: dict.fromkeys(("comment",)),
    gradings: dict.fromkeys(("error",)),
}
"""What columns hold afterwards. Ids of our own, numbers and names of models stay."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of requests: a key, by its hash or its alias, or a user, of the key or as clients
    named them."""

    key: str | None = None
    user: str | None = None

    @property
    def owns(self) -> ColumnElement[bool]:
        """The condition on a request."""
        if self.key is not None:
            return or_(requests.c.key_hash == self.key, requests.c.key_alias == self.key)
        return or_(requests.c.user_id == self.user, requests.c.end_user == self.user)


Chunk = Sequence[Row[Any]]
"""Requests: their id, position, zoo and time."""
Reached = Mapping[str, Base]
"""By zoo, the state that can stand for what is erased."""


async def chunks(engine: AsyncEngine, owner: Owner) -> AsyncIterator[Chunk]:
    """Yield the requests of the owner, in the order of the log."""
    own, after = requests.c, 0
    while True:
        query: Select[Any] = select(own.request_id, own.position, own.zoo, own.created_at)
        query = query.where(owner.owns, own.position > after).order_by(own.position).limit(CHUNK)
        async with engine.connect() as connection:
            found = (await connection.execute(query)).all()
        if not found:
            return
        yield found
        after = found[-1].position


async def keep(engine: AsyncEngine, bases: Sequence[Base]) -> bool:
    """Let these states stand for the log before them; False where one was taken away since it was
    read, and nothing is written."""
    async with engine.begin() as connection:
        await log.lock(connection)
        if not await are_kept(connection, bases):
            return False
        await replace_bases(connection, bases)
    return True


async def erasable(connection: AsyncConnection, chunk: Chunk, reached: Reached) -> list[str]:
    """Find the requests about which the state of their zoo holds everything."""
    last = {row.request_id: row.position for row in chunk}
    for table in (calls, labels):
        newest = (
            select(table.c.request_id, func.max(table.c.position))
            .where(table.c.request_id.in_(list(last)))
            .group_by(table.c.request_id)
        )
        for request_id, position in await connection.execute(newest):
            last[request_id] = max(last[request_id], position)
    return [
        row.request_id
        for row in chunk
        if row.zoo in reached and last[row.request_id] <= reached[row.zoo].position
    ]


async def erase(engine: AsyncEngine, chunk: Chunk, reached: Reached) -> list[str]:
    """Erase those, and return their ids. Under the log's lock, so that nothing is added to one
    between the look and the change."""
    async with engine.begin() as connection:
        if connection.dialect.name == "sqlite":  # which would leave the bytes in free room
            await connection.exec_driver_sql("PRAGMA secure_delete = ON")
        await log.lock(connection)
        found = await erasable(connection, chunk, reached)
        for table, values in ERASED.items():
            of_these = table.c.request_id.in_(found)
            await connection.execute(update(table).where(of_these).values(values))
    return found


async def empty_wal(engine: AsyncEngine) -> None:
    """Write SQLite's log of writes back into its file, as far as no reader needs it: the former
    bytes are in it."""
    if engine.dialect.name == "sqlite":
        async with engine.connect() as connection:
            await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
