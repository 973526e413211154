"""The newest snapshot of each zoo against the fold of the log, which it only abbreviates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine
from litellm_messplus.learning import snapshot
from litellm_messplus.learning.zoo_state import ZooState
from litellm_messplus.store import lessons, snapshots
from litellm_messplus.upkeep.comparison import difference
from litellm_messplus.upkeep.finding import Finding, Outcome
from litellm_messplus.upkeep.folding import Fold

CHECK = "snapshots"


async def newest_snapshots(
    database: AsyncEngine, engines: Mapping[str, Engine]
) -> dict[str, snapshots.Snapshot | None]:
    """Of each zoo, the one that a start would go on from. To be asked for before the head of the
    log is: a running proxy takes new ones."""
    return {
        name: await snapshots.newest(
            database, name, snapshot.fingerprint(engine.zoo, engine.encoder.name)
        )
        for name, engine in engines.items()
    }


async def check_snapshots(
    database: AsyncEngine,
    fold: Fold,
    taken: Mapping[str, snapshots.Snapshot | None],
    head: int,
) -> list[Finding]:
    """Fold the log to its head; on the way, hold each zoo's state against its snapshot.

    The state after a snapshot follows from it and the log alone: so where they are equal to the
    bit there, a start from either ends in the same state.
    """
    findings, due = [], defaultdict[int, list[snapshots.Snapshot]](list)
    for zoo, found in taken.items():
        if found is None:
            told = f"{zoo}: no snapshot fits these settings; a start folds the whole log"
            findings.append(Finding(CHECK, Outcome.NOTE, told))
        elif found.position > head:
            findings.append(_ahead(found, head))
        else:
            due[found.position].append(found)
    for position in sorted(due):
        await _fold_to(fold, position)
        for found in due[position]:
            state = fold.engines[found.zoo].state
            findings.append(await _compared(database, fold.engines[found.zoo], found, state))
    await _fold_to(fold, head)
    return [*findings, _folded(fold, head)]


async def _fold_to(fold: Fold, position: int) -> None:
    async for _ in fold.to(position):
        pass


def _ahead(found: snapshots.Snapshot, head: int) -> Finding:
    told = (
        f"{found.zoo}: the newest snapshot is at {found.position}, and the log ends at {head} (was "
        "an older copy put back?); the next start drops it, and folds the whole log"
    )
    return Finding(CHECK, Outcome.NOTE, told)


async def _compared(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot, folded: ZooState
) -> Finding:
    at = f"{found.zoo}: the snapshot at {found.position}"
    advice = (
        f"stop the proxy, then: DELETE FROM snapshots WHERE zoo = '{found.zoo}'; the next start "
        "folds the whole log"
    )
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError) as error:
        return Finding(CHECK, Outcome.WRONG, f"{at} cannot be read ({error})", advice)
    if state.taught != await lessons.counts(database, found.zoo, found.position):
        told = f"{at} holds lessons that were taken back; the next start folds the whole log"
        return Finding(CHECK, Outcome.NOTE, told)
    differs = difference(folded, state)
    if differs is None:
        return Finding(CHECK, Outcome.SOUND, f"{at} is the fold of the log, to the bit")
    if differs.is_rounding:
        told = (
            f"{at} is the fold of the log but for rounding ({differs.share:.0e} of {differs.place})"
            ", as on another processor or by another numpy"
        )
        return Finding(CHECK, Outcome.NOTE, told)
    return Finding(
        CHECK, Outcome.WRONG, f"{at} is not the fold of the log (see {differs.place})", advice
    )


def _folded(fold: Fold, head: int) -> Finding:
    names = ", ".join(fold.engines)
    if not fold.failed:
        told = f"{names}: the whole log is folded in, up to {head}"
        return Finding("fold", Outcome.SOUND, told)
    return Finding(
        "fold",
        Outcome.WRONG,
        f"{fold.failed} entries of the log cannot be folded in ({_shown(fold.failures)})",
        "every start passes them over; report them with the version of litellm-messplus",
    )


def _shown(failures: Sequence[str]) -> str:
    return "; ".join(failures)
