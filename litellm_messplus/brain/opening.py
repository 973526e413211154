"""Opening the database at a start: at this code's version, and the engines restored from it."""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.modes import LiveModes, adopt
from litellm_messplus.core.engine import Engine
from litellm_messplus.learning.keeper import Keeper, LearnerGoneError
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.projections import save_rules
from litellm_messplus.learning.spool import Spool
from litellm_messplus.restore import keep_new, restore
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import create_engine, explained, migrate

FIRST_SECONDS = 30.0
"""Seconds that a start waits for the state of a learner that another worker has started."""
FIRST_LOOK_SECONDS = 0.02
CONNECT_SECONDS = 10.0
"""Seconds that a database may take to accept a connection: asyncpg would wait a minute."""


class Opened(NamedTuple):
    """The outcome of opening the database: the log position up to which the engines are restored,
    None if no learner has published a state yet, and the key of the digests, without which the
    first requests would not be held."""

    position: int | None
    conversation_key: bytes


async def open_database(
    settings: MessplusSettings,
    engines: dict[str, Engine],
    modes: LiveModes | None = None,
    keeper: Keeper | None = None,
) -> Opened:
    """Migrate the database, restore the engines to the end of its log, and read the modes. With a
    ``keeper``, a learner restores them, and the engines get the state that it publishes.

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
            position: int | None
            if keeper is None:
                position = await restore(database, engines)
                for engine in engines.values():
                    await keep_new(database, engine, position)
            else:
                position = await _state_of_learner(database, engines, keeper)
            return Opened(position, await read_conversation_key(database))
    finally:
        await database.dispose()


async def _state_of_learner(
    database: AsyncEngine, engines: dict[str, Engine], keeper: Keeper
) -> int | None:
    """Give the engines the state that a learner publishes, and return its position. Starts a
    learner if none is in office, and waits for one that is not ready yet, for ``FIRST_SECONDS``;
    returns None without a state."""
    try:
        await asyncio.to_thread(keeper.begin)
    except LearnerGoneError as error:  # it is tried again
        logger.warning("%s", error)
        return None
    spool = Spool(database, engines, Counters(), "", outlet_of(database))
    with suppress(TimeoutError):
        async with asyncio.timeout(FIRST_SECONDS):
            while not spool.has_state.is_set():
                with suppress(ValueError):  # of a learner of another version
                    await spool.read()
                await asyncio.sleep(FIRST_LOOK_SECONDS)
    return spool.position if spool.has_state.is_set() else None


async def _mend(database: AsyncEngine) -> None:
    behind = await log.mend_head(database)
    if behind is not None:
        logger.warning(
            "log_head said that the log ends at %d, and it has newer records (was a backup put "
            "back in part?): it is moved up to them; `messplus verify` says whether more is wrong",
            behind,
        )
