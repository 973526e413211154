"""Opening the database at a start: at this code's version, and the engines restored from it."""

import asyncio
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.modes import LiveModes, adopt
from litellm_messplus.core.engine import Engine
from litellm_messplus.learning.projections import save_rules
from litellm_messplus.restore import keep_new, restore
from litellm_messplus.runtime.counters import logger
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import create_engine, explained, migrate

CONNECT_SECONDS = 10.0
"""Seconds that a database may take to accept a connection: asyncpg would wait a minute."""


class Opened(NamedTuple):
    """The outcome of opening the database: the log position up to which the engines are restored,
    and the key of the digests, without which the first requests would not be held."""

    position: int
    conversation_key: bytes


async def open_database(
    settings: MessplusSettings,
    engines: dict[str, Engine],
    modes: LiveModes | None = None,
) -> Opened:
    """Migrate the database, restore the engines to the end of its log, and read the modes.

    Raises ConfigurationError if it cannot be used, DatabaseAwayError if it does not answer now. The
    engines must then be restored anew.
    """
    database = create_engine(settings.database)
    try:
        with explained(database):
            async with asyncio.timeout(CONNECT_SECONDS), database.connect():
                pass
            await migrate(database)
            await _mend(database)
            await save_rules(
                database, {name: zoo.labels.precedence for name, zoo in settings.zoos.items()}
            )
            await adopt(database, modes or LiveModes(settings.zoos))
            for engine in engines.values():
                engine.resume(engine.empty_state())
            position = await restore(database, engines)
            for engine in engines.values():
                await keep_new(database, engine, position)
            return Opened(position, await read_conversation_key(database))
    finally:
        await database.dispose()


async def _mend(database: AsyncEngine) -> None:
    behind = await log.mend_head(database)
    if behind is not None:
        logger.warning(
            "log_head said that the log ends at %d, and it has newer records (was a backup put "
            "back in part?): it is moved up to them; `messplus verify` says whether more is wrong",
            behind,
        )
