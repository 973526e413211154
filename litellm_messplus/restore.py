"""Starting at the end of the log: the newest snapshot that fits, and the fold of later records."""

import asyncio
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Entry
from litellm_messplus.runtime.counters import logger
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.entries import read_entries


async def restore(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
    """Bring engines to the head of the log, and return its position.

    Each starts from the newest snapshot that fits its settings and can be read, else from what the
    log has.
    """
    taken = {name: await _newest_snapshot(database, engine) for name, engine in engines.items()}
    ends = await log.ends(database)
    reached = {
        name: await _load(database, engine, taken[name], ends) for name, engine in engines.items()
    }
    async for entry in read_entries(database, min(reached.values(), default=ends.head), ends.head):
        if entry.position > reached.get(entry.zoo, ends.head):
            fold(engines, entry)
    return ends.head


async def _newest_snapshot(database: AsyncEngine, engine: Engine) -> snapshots.Snapshot | None:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    return await snapshots.newest(database, engine.zoo.name, fingerprint)


async def _load(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot | None, ends: log.Ends
) -> int:
    """Load the engine's state from its snapshot, which was read before the head, and return the
    position of that state; 0 for the empty one."""
    position = 0
    if found is not None and await _resumed(database, engine, found, ends.head):
        position = found.position
    else:
        engine.resume(engine.empty_state())
    if position < ends.start:
        logger.warning(
            "no snapshot of %s after %d can be read under these settings, and older requests are "
            "pruned: its state is folded from what the log still has",
            *(engine.zoo.name, position),
        )
    return position


async def _resumed(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot, head: int
) -> bool:
    """Resume from the snapshot; return False if it is unreadable or contradicts the log."""
    if found.position > head:
        logger.warning(
            "the snapshot of %s at %d is ahead of the log, which ends at %d (was an older copy of "
            "the database put back?); it is dropped, and the whole log folded",
            *(engine.zoo.name, found.position, head),
        )
        await snapshots.drop_ahead(database, engine.zoo.name)
        return False
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError):
        logger.exception("the snapshot at %d is unreadable; folding the whole log", found.position)
        return False
    engine.resume(state)
    return True


# Saving the state of an engine as a snapshot, so that a start need not fold the whole log.


async def keep(database: AsyncEngine, engine: Engine, position: int) -> None:
    """Save the current state, which is that after the record at ``position``. The bytes are made in
    a thread: that takes some milliseconds."""
    taken = snapshot.taken(engine.state)
    await snapshots.save(
        database,
        snapshots.Snapshot(
            zoo=engine.zoo.name,
            position=position,
            fingerprint=snapshot.fingerprint(engine.zoo, engine.encoder.name),
            state=await asyncio.to_thread(snapshot.pack, *taken),
        ),
    )


async def keep_new(database: AsyncEngine, engine: Engine, position: int) -> None:
    """Save the state if no snapshot fits the settings, so that after a start under changed settings
    the newest snapshot is one under those in force."""
    if position > 0 and await _newest_snapshot(database, engine) is None:
        await keep(database, engine, position)


def fold(engines: Mapping[str, Engine], entry: Entry) -> bool:
    """Fold an entry into the engine of its zoo; False if that failed, which is logged.

    One invalid entry must not hold up the log, now or at any later start. Entries of a zoo that is
    no longer configured are skipped.
    """
    engine = engines.get(entry.zoo)
    if engine is None:
        return True
    try:
        engine.apply(entry)
    except Exception:
        kind = type(entry).__name__
        logger.exception("the %s at %d could not be folded in", kind, entry.position)
        return False
    return True
