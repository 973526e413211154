"""Opening the database at a start: at this code's version, and the engines restored from it."""

import asyncio

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine
from litellm_messplus.keeping import keep_new
from litellm_messplus.restore import restore
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import precedence
from litellm_messplus.store.database import create_engine, explained, migrate

CONNECT_SECONDS = 10.0
"""How long a database may take to answer at all: asyncpg would wait a minute."""


async def open_database(settings: MessplusSettings, engines: dict[str, Engine]) -> int:
    """Migrate it and bring the engines to the end of its log; returns that position.

    Raises ConfigurationError where it cannot be used, DatabaseAwayError where it does not answer
    now. The engines are then to be restored anew.
    """
    database = create_engine(settings.database)
    try:
        with explained(database):
            await _reach(database)
            await migrate(database)
            await precedence.save(
                database, {name: zoo.labels.precedence for name, zoo in settings.zoos.items()}
            )
            for engine in engines.values():
                engine.resume(engine.empty_state())
            position = await restore(database, engines)
            for engine in engines.values():
                await keep_new(database, engine, position)
            return position
    finally:
        await database.dispose()


async def _reach(database: AsyncEngine) -> None:
    async with asyncio.timeout(CONNECT_SECONDS), database.connect():
        pass
