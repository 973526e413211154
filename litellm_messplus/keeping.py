"""Keeping the state of an engine as a snapshot, so that a start need not fold the whole log."""

import asyncio

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine
from litellm_messplus.learning import snapshot
from litellm_messplus.store import snapshots


async def keep(database: AsyncEngine, engine: Engine, position: int) -> None:
    """Write the state as of now, which is that after the record at ``position``. The bytes are made
    in a thread: they take some milliseconds."""
    taken = snapshot.taken(engine.state)
    await snapshots.save(
        database,
        snapshots.Snapshot(
            zoo=engine.zoo.name,
            position=position,
            fingerprint=snapshot.fingerprint(engine.zoo, engine.encoder.name),
            state=await asyncio.to_thread(snapshot.pack, *taken),
            settings=snapshot.settings_of(engine.zoo, engine.encoder.name),
        ),
    )


async def keep_new(database: AsyncEngine, engine: Engine, position: int) -> None:
    """Do so where no snapshot fits the settings: after a start under changed settings, the newest
    snapshot is then one of those that are in force."""
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    if position > 0 and await snapshots.newest(database, engine.zoo.name, fingerprint) is None:
        await keep(database, engine, position)
