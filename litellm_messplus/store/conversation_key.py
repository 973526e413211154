"""The key of the digests of prompts: the same for all workers, and after every restart."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import conversation_key


async def read_conversation_key(database: AsyncEngine) -> bytes:
    """Read the key that the migration drew.

    Raises sqlalchemy.exc.SQLAlchemyError where the database does not answer, or has none.
    """
    async with database.connect() as connection:
        found = (await connection.execute(select(conversation_key.c.key))).scalar_one()
    return bytes.fromhex(found)
