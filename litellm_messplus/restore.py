"""Starting where the log ends: the newest snapshot that fits, and the fold of what came after."""

import logging
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine, fold
from litellm_messplus.learning import snapshot
from litellm_messplus.store import lessons, log, snapshots
from litellm_messplus.store.entries import read_entries

logger = logging.getLogger(__name__)


async def restore(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
    """Bring fresh engines to the head of the log; returns its position.

    Each goes on from the newest snapshot that fits its settings, or folds the whole log.
    """
    taken = {name: await _newest_snapshot(database, engine) for name, engine in engines.items()}
    head = await log.head(database)
    reached = {
        name: await _load(database, engine, taken[name], head) for name, engine in engines.items()
    }
    async for entry in read_entries(database, min(reached.values(), default=head), head):
        if entry.position > reached.get(entry.zoo, head):
            fold(engines, entry)
    return head


async def _newest_snapshot(database: AsyncEngine, engine: Engine) -> snapshots.Snapshot | None:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    return await snapshots.newest(database, engine.zoo.name, fingerprint)


async def _load(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot | None, head: int
) -> int:
    """Up to where the engine's state has come by its snapshot, which was read before the head."""
    if found is None:
        return 0
    if found.position > head:
        logger.warning(
            "the snapshot of %s at %d is ahead of the log, which ends at %d (was an older copy of "
            "the database put back?); it is dropped, and the whole log folded",
            *(engine.zoo.name, found.position, head),
        )
        await snapshots.drop_ahead(database, engine.zoo.name)
        return 0
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError):
        logger.exception("the snapshot at %d is unreadable; folding the whole log", found.position)
        return 0
    if state.taught != await lessons.counts(database, engine.zoo.name, found.position):
        logger.warning("lessons of %s were forgotten; folding the whole log", engine.zoo.name)
        return 0
    engine.resume(state)
    return found.position
