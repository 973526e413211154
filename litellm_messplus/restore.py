"""Starting at the end of the log: the newest snapshot that fits, and the fold of later records."""

import asyncio
from collections.abc import Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine, fold
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.state import snapshot
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.entries import read_entries


async def restore(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
    """Bring engines to the head of the log, and return its position.

    Each starts from the newest snapshot that fits its settings, else from its base if the log was
    pruned, else it folds the whole log. Raises ConfigurationError if a base does not fit.
    """
    while True:
        bases = await snapshots.base_positions(database)
        head = await _restore(database, engines)
        if bases == await snapshots.base_positions(database):
            return head
        logger.warning("the log was pruned while it was folded: folding it again from there")


async def _restore(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
    taken = {name: await _newest_snapshot(database, engine) for name, engine in engines.items()}
    ends = await log.ends(database)
    reached = {
        name: await _load(database, engine, taken[name], ends) for name, engine in engines.items()
    }
    head = ends.head
    async for entry in read_entries(database, min(reached.values(), default=head), head):
        if entry.position > reached.get(entry.zoo, head):
            fold(engines, entry)
    return head


async def _newest_snapshot(database: AsyncEngine, engine: Engine) -> snapshots.Snapshot | None:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    return await snapshots.newest(database, engine.zoo.name, fingerprint)


async def _load(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot | None, ends: log.Ends
) -> int:
    """Load the engine's state from its snapshot, which was read before the head, or from its base,
    and return the position of that state."""
    if found is not None and await _resumed(database, engine, found, ends.head):
        return found.position
    return begin(engine, await snapshots.base_of(database, engine.zoo.name), ends.start)


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
    if state.taught != await snapshots.lessons_upto(database, engine.zoo.name, found.position):
        logger.warning("lessons of %s were forgotten; folding the whole log", engine.zoo.name)
        return False
    engine.resume(state, found.position)
    return True


def begin(engine: Engine, found: snapshots.Base | None, start: int) -> int:
    """Bring an engine to the start of its zoo's log, its base or empty, and return the position up
    to which that is folded. ``start`` is where the log starts.

    Raises ConfigurationError if the base does not fit the settings, or cannot be read.
    """
    if found is None:
        engine.resume(engine.empty_state(), start)
        return start
    if found.fingerprint != snapshot.fingerprint(engine.zoo, engine.encoder.name):
        raise _other_settings(engine, found)
    try:
        engine.resume(snapshot.load(found.state, engine.empty_state()), found.position)
    except (ValueError, KeyError, OSError) as error:
        allowed = (
            f"a state that can be read ({error}): restore it from a backup, or {_way_out(found)}"
        )
        raise ConfigurationError(
            f"the base of zoo {found.zoo} in log_base", "unreadable bytes", allowed
        ) from error
    return found.position


def _other_settings(engine: Engine, found: snapshots.Base) -> ConfigurationError:
    """Build the error that names the settings changed since the log was pruned, and what to do."""
    now = snapshot.settings_of(engine.zoo, engine.encoder.name)
    then = found.settings or {}
    changed = [name for name in now if name in then and now[name] != then[name]]
    return ConfigurationError(
        " and ".join(_key(found.zoo, name) for name in changed) or f"messplus.zoos.{found.zoo}",
        _shown(now, changed) or "other settings",
        f"{_shown(then, changed) or 'those'} that the log was pruned under on "
        f"{found.created_at:%Y-%m-%d}: without the pruned requests, the state cannot be computed "
        f"anew. Put it back, or {_way_out(found)}",
    )


def _key(zoo: str, name: str) -> str:
    """Return the setting's name in the operator's files."""
    match name:
        case "encoder":
            return "messplus.encoder"
        case "candidates":
            return f"model_list, the candidates of {zoo}"
        case "format" | "surface":
            return f"litellm-messplus, its {name} of the state"
        case _:
            return f"messplus.zoos.{zoo}.{name}"


def _shown(settings: Mapping[str, Any], names: list[str]) -> str:
    return " and ".join(_words(settings[name]) for name in names)


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _way_out(found: snapshots.Base) -> str:
    return (
        "let the zoo learn anew from the requests that are left: messplus prune --begin-anew "
        f"{found.zoo}"
    )


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
            settings=snapshot.settings_of(engine.zoo, engine.encoder.name),
        ),
    )


async def keep_new(database: AsyncEngine, engine: Engine, position: int) -> None:
    """Save the state if no snapshot fits the settings, so that after a start under changed settings
    the newest snapshot is one under those in force."""
    if position > 0 and await _newest_snapshot(database, engine) is None:
        await keep(database, engine, position)
