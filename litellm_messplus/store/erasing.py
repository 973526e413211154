"""Erasing the owner and the content of requests: their rows stay, anonymous.

The fold reads some of that: the features and the surface of a prompt, from which a label teaches.
So a request is erased only once the base of its zoo covers all that is logged about it, and no fold
reads its rows again. Later records about it find no features, in every later read.
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
"""Requests erased in one transaction, for which writers of labels wait."""
ERASED = {
    requests: {
        **dict.fromkeys(("key_hash", "key_alias", "team_id", "user_id", "end_user", "tags")),
        **dict.fromkeys(("prompt", "features", "surface", "surface_version")),
        **dict.fromkeys(("prefix", "session", "conversation_draw", "asked")),
        "litellm_call_id": requests.c.request_id,
    },
    calls: {
        **dict.fromkeys(("response_id", "error", "answer")),
        **dict.fromkeys(("answer_surface", "answer_version")),
    },
    labels: dict.fromkeys(("comment",)),
    gradings: dict.fromkeys(("error",)),
}
"""The values of the erased columns. The plugin's own ids, numbers and names of models stay."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of requests: a key, by its hash or alias, or a user, by the key's user id or by the
    end user that clients sent."""

    key: str | None = None
    user: str | None = None

    @property
    def owns(self) -> ColumnElement[bool]:
        """The condition on a request."""
        if self.key is not None:
            return or_(requests.c.key_hash == self.key, requests.c.key_alias == self.key)
        return or_(requests.c.user_id == self.user, requests.c.end_user == self.user)


Chunk = Sequence[Row[Any]]
"""Requests: id, position, zoo and time of each."""
Reached = Mapping[str, Base]
"""The state that can replace the erased rows, by zoo."""


async def chunks(engine: AsyncEngine, owner: Owner) -> AsyncIterator[Chunk]:
    """Yield the requests of the owner, in log order."""
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
    """Store these states as the bases of their zoos; False, with nothing written, if one was
    deleted since it was read."""
    async with engine.begin() as connection:
        await log.lock(connection)
        if not await are_kept(connection, bases):
            return False
        await replace_bases(connection, bases)
    return True


async def erasable(connection: AsyncConnection, chunk: Chunk, reached: Reached) -> list[str]:
    """Find the requests whose records are all included in the state of their zoo."""
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
    """Erase the erasable requests and return their ids. Holds the log's lock, so that no record
    about one is added between the check and the update."""
    async with engine.begin() as connection:
        if connection.dialect.name == "sqlite":  # which would leave the bytes in free pages
            await connection.exec_driver_sql("PRAGMA secure_delete = ON")
        await log.lock(connection)
        found = await erasable(connection, chunk, reached)
        for table, values in ERASED.items():
            of_these = table.c.request_id.in_(found)
            await connection.execute(update(table).where(of_these).values(values))
    return found


async def empty_wal(engine: AsyncEngine) -> None:
    """Write SQLite's write-ahead log back into its file, as far as no reader needs it: it still
    holds the erased bytes."""
    if engine.dialect.name == "sqlite":
        async with engine.connect() as connection:
            await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
