"""Erasing the owner and the content of requests: their rows stay, anonymous."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import log
from litellm_messplus.store.tables import calls, gradings, labels, requests

ERASED = {
    calls: {
        **dict.fromkeys(("response_id", "error", "answer")),
        **dict.fromkeys(("answer_surface", "answer_version")),
    },
    labels: dict.fromkeys(("comment",)),
    gradings: dict.fromkeys(("error",)),
    requests: {  # last: the owner is found by it
        **dict.fromkeys(("key_hash", "key_alias", "team_id", "user_id", "end_user", "tags")),
        **dict.fromkeys(("prompt", "features", "surface", "surface_version")),
        **dict.fromkeys(("prefix", "session", "conversation_draw")),
        "litellm_call_id": requests.c.request_id,
    },
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


async def count(engine: AsyncEngine, owner: Owner) -> int:
    """Count the requests of the owner."""
    query = select(func.count()).select_from(requests).where(owner.owns)
    async with engine.connect() as connection:
        return (await connection.execute(query)).scalar_one()


async def erase(engine: AsyncEngine, owner: Owner) -> int:
    """Erase whose the requests of the owner are and what was in them, and return their number."""
    is_of_file = engine.dialect.name == "sqlite"
    async with engine.begin() as connection:
        if is_of_file:  # which would leave the bytes in free pages
            await connection.exec_driver_sql("PRAGMA secure_delete = ON")
        await log.lock(connection)
        for table, values in ERASED.items():
            of_owner = table.c.request_id.in_(select(requests.c.request_id).where(owner.owns))
            erased = await connection.execute(update(table).where(of_owner).values(values))
    if is_of_file:  # its write-ahead log holds the bytes too
        async with engine.connect() as connection:
            await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return erased.rowcount
