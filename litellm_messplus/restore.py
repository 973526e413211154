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
    reached = {name: await _load_snapshot(database, engine) for name, engine in engines.items()}
    head = await log.head(database)
    async for entry in read_entries(database, min(reached.values(), default=head), head):
        if entry.position > reached.get(entry.zoo, head):
            fold(engines, entry)
    return head


async def _load_snapshot(database: AsyncEngine, engine: Engine) -> int:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    found = await snapshots.newest(database, engine.zoo.name, fingerprint)
    if found is None:
        return 0
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError):
        logger.exception("the snapshot at %d is unreadable; folding the whole log", found.position)
        return 0
    if state.taught != await lessons.counts(database, engine.zoo.name, found.position):
        logger.warning("lessons of %s were forgotten; folding the whole log", engine.zoo.name)
        return 0
    engine.state = state
    return found.position
