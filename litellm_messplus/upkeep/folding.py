"""The log folded from its beginning, step by step, for others to look at on the way."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.errors import MessplusError
from litellm_messplus.restore import begin
from litellm_messplus.settings.load import load_settings, read_config
from litellm_messplus.state import snapshot
from litellm_messplus.state.entries import Entry
from litellm_messplus.state.zoo_state import ZooState
from litellm_messplus.store import base, lessons, log, snapshots
from litellm_messplus.store.entries import PAGE, read_entries
from litellm_messplus.upkeep.finding import CheckResult, Outcome, difference

# What a configuration makes of a log: its zoos, each with a fresh engine.


@dataclass(frozen=True, slots=True)
class Configured:
    """The database that a proxy with it would open, and its engines before the first entry."""

    database: str
    engines: Mapping[str, Engine]


def read_configured(path: Path) -> Configured:
    """Read the configuration as the proxy starts with it. Raises ConfigurationError where it could
    not."""
    from litellm_messplus.proxy.deployments.index import configured_zoos

    # As the proxy does: with more threads, sums round otherwise.
    threadpool_limits(limits=1, user_api="blas")
    config = read_config(path)
    settings = load_settings(config)
    zoos = configured_zoos(settings, config)
    encoder = load_encoder(settings.encoder)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    return Configured(settings.database, engines)


class UnreadableLogError(MessplusError):
    """A row of the log cannot be read as the entry that it should be."""


SHOWN = 3
"""Entries that could not be folded in, and are kept to be named."""


class Fold:
    """Fresh engines, and how far they have come. What cannot be folded in is passed over, as the
    proxy does, and counted in ``failed``; the first few are in ``failures``. ``begins`` says where
    each zoo's fold goes on, once the log was pruned."""

    def __init__(self, database: AsyncEngine, engines: Mapping[str, Engine]) -> None:
        self.engines = engines
        self.position = 0
        self.begins: dict[str, int] = {}
        self.failed = 0
        self.failures: list[str] = []
        self._database = database

    async def begin(self) -> None:
        """Bring each engine to where the log of its zoo begins. Raises ConfigurationError where a
        base does not fit the configuration."""
        start = (await log.ends(self._database)).start
        for name, engine in self.engines.items():
            self.begins[name] = begin(engine, await base.read(self._database, name), start)
        self.position = min(self.begins.values(), default=0)

    async def to(self, position: int) -> AsyncIterator[Entry]:
        """Fold on up to there; gives each entry of these zoos once it is folded in. Raises
        UnreadableLogError."""
        async for entry in self._entries(position):
            engine = self.engines.get(entry.zoo)
            if engine is None or entry.position <= self.begins.get(entry.zoo, 0):
                continue
            try:
                engine.apply(entry)
            except Exception as error:
                self._failed(entry, error)
            yield entry
        self.position = max(self.position, position)

    async def _entries(self, upto: int) -> AsyncIterator[Entry]:
        seen = self.position
        try:
            async for entry in read_entries(self._database, self.position, upto):
                seen = entry.position
                yield entry
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableLogError(
                f"a row at one of the positions {seen + 1} to {min(seen + PAGE, upto)} is no entry "
                f"of the log ({type(error).__name__}: {error})"
            ) from error

    def _failed(self, entry: Entry, error: Exception) -> None:
        self.failed += 1
        if len(self.failures) < SHOWN:
            words = " ".join(str(error).split())[:100]
            kind = type(entry).__name__
            self.failures.append(f"{kind} at {entry.position}: {type(error).__name__} {words}")


# Where the log begins since it was pruned: the state of each zoo that the fold goes on from.

BASES_CHECK = "bases"


async def check_bases(database: AsyncEngine) -> list[CheckResult]:
    """Tell of those that a start goes on from; nothing where nothing was pruned."""
    found = [await base.read(database, zoo) for zoo in sorted(await base.positions(database))]
    return [
        CheckResult(
            BASES_CHECK,
            Outcome.SOUND,
            f"{each.zoo}: the fold begins at {each.position}, with the state that the log was "
            f"pruned to on {each.created_at:%Y-%m-%d}",
        )
        for each in found
        if each is not None
    ]


# The newest snapshot of each zoo against the fold of the log, which it only abbreviates.

SNAPSHOTS_CHECK = "snapshots"


async def newest_snapshots(
    database: AsyncEngine, engines: Mapping[str, Engine]
) -> dict[str, snapshots.Snapshot | None]:
    """Find, of each zoo, the snapshot that a start would go on from. To be asked for before the
    head of the log is: a running proxy takes new ones."""
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
) -> list[CheckResult]:
    """Fold the log to its head; on the way, hold each zoo's state against its snapshot.

    The state after a snapshot follows from it and the log alone: so where they are equal to the
    bit there, a start from either ends in the same state.
    """
    findings, due = [], defaultdict[int, list[snapshots.Snapshot]](list)
    for zoo, found in taken.items():
        if found is None:
            told = f"{zoo}: no snapshot fits these settings; a start folds the whole log"
            findings.append(CheckResult(SNAPSHOTS_CHECK, Outcome.NOTE, told))
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


def _ahead(found: snapshots.Snapshot, head: int) -> CheckResult:
    told = (
        f"{found.zoo}: the newest snapshot is at {found.position}, and the log ends at {head} (was "
        "an older copy put back?); the next start drops it, and folds the whole log"
    )
    return CheckResult(SNAPSHOTS_CHECK, Outcome.NOTE, told)


async def _compared(
    database: AsyncEngine, engine: Engine, found: snapshots.Snapshot, folded: ZooState
) -> CheckResult:
    at = f"{found.zoo}: the snapshot at {found.position}"
    advice = (
        f"stop the proxy, then: DELETE FROM snapshots WHERE zoo = '{found.zoo}'; the next start "
        "folds the whole log"
    )
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError) as error:
        return CheckResult(SNAPSHOTS_CHECK, Outcome.WRONG, f"{at} cannot be read ({error})", advice)
    if state.taught != await lessons.counts(database, found.zoo, found.position):
        told = f"{at} holds lessons that were taken back; the next start folds the whole log"
        return CheckResult(SNAPSHOTS_CHECK, Outcome.NOTE, told)
    differs = difference(folded, state)
    if differs is None:
        return CheckResult(
            SNAPSHOTS_CHECK, Outcome.SOUND, f"{at} is the fold of the log, to the bit"
        )
    if differs.is_rounding:
        told = (
            f"{at} is the fold of the log but for rounding ({differs.share:.0e} of {differs.place})"
            ", as on another processor or by another numpy"
        )
        return CheckResult(SNAPSHOTS_CHECK, Outcome.NOTE, told)
    return CheckResult(
        SNAPSHOTS_CHECK,
        Outcome.WRONG,
        f"{at} is not the fold of the log (see {differs.place})",
        advice,
    )


def _folded(fold: Fold, head: int) -> CheckResult:
    names = ", ".join(fold.engines)
    if not fold.failed:
        told = f"{names}: the whole log is folded in, up to {head}"
        return CheckResult("fold", Outcome.SOUND, told)
    return CheckResult(
        "fold",
        Outcome.WRONG,
        f"{fold.failed} entries of the log cannot be folded in ({_shown(fold.failures)})",
        "every start passes them over; report them with the version of litellm-messplus",
    )


def _shown(failures: Sequence[str]) -> str:
    return "; ".join(failures)
