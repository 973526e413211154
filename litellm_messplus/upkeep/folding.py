"""The log folded from its beginning, step by step, with observers on the way; and the comparison of
two states."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.restore import begin
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state import snapshot
from litellm_messplus.state.entries import Entry
from litellm_messplus.state.zoo_state import ZooState
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.entries import PAGE, read_entries


def fresh_engines(settings: MessplusSettings, zoos: Mapping[str, Zoo]) -> dict[str, Engine]:
    """Build an engine for each zoo, before the first entry."""
    # As the proxy does: with more threads, sums round differently.
    threadpool_limits(limits=1, user_api="blas")
    encoder = load_encoder(settings.encoder)
    return {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}


class UnreadableLogError(MessplusError):
    """A row of the log that cannot be read as its entry."""


SHOWN = 3
"""Most entries that could not be folded in and are kept for the report."""


class Fold:
    """Fresh engines, and their position in the log. Entries that cannot be folded in are skipped,
    as in the proxy, and counted in ``failed``; the first few are in ``failures``. ``begins`` holds
    where each zoo's fold starts if the log was pruned."""

    def __init__(self, database: AsyncEngine, engines: Mapping[str, Engine]) -> None:
        self.engines = engines
        self.position = 0
        self.begins: dict[str, int] = {}
        self.failed = 0
        self.failures: list[str] = []
        self._database = database

    async def begin(self) -> None:
        """Bring each engine to the beginning of its zoo's log. Raises ConfigurationError if a base
        does not fit the configuration."""
        start = (await log.ends(self._database)).start
        for name, engine in self.engines.items():
            self.begins[name] = begin(engine, await snapshots.base_of(self._database, name), start)
        self.position = min(self.begins.values(), default=0)

    async def to(
        self,
        position: int,
        saw: Callable[[Entry], None] = lambda entry: None,
        comes: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        """Fold up to that position; ``comes`` is called with each entry of these zoos before it is
        folded in, ``saw`` after. Raises UnreadableLogError."""
        async for entry in self._entries(position):
            engine = self.engines.get(entry.zoo)
            if engine is None or entry.position <= self.begins.get(entry.zoo, 0):
                continue
            comes(entry)
            try:
                engine.apply(entry)
            except Exception as error:
                self._failed(entry, error)
            saw(entry)
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


# The comparison: numbers, arrays and words by place, equal to the bit, or with the largest
# difference.

ROUNDING = 1e-6
"""Relative difference that another processor, another numpy or another order of addition may cause
in the same numbers."""
Places = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference: ``share`` of the greater number, at ``place``."""

    place: str
    share: float

    @property
    def is_rounding(self) -> bool:
        """Whether rounding alone explains it, so that the same log may have led to both."""
        return self.share <= ROUNDING


def difference(written: Places, follows: Places) -> Difference:
    """Find the largest difference between two states with the same places, at least one."""
    places = sorted(written.keys() | follows.keys())
    found = (Difference(each, _share(written.get(each), follows.get(each))) for each in places)
    return max(found, key=lambda each: each.share)


def difference_of_states(written: ZooState, follows: ZooState) -> Difference | None:
    """Find the largest difference; None if both are the same to the bit."""
    if snapshot.dump(written) == snapshot.dump(follows):
        return None
    return difference(_places(written), _places(follows))


def _places(state: ZooState) -> Places:
    plain, arrays = snapshot.taken(state)
    return {**dict(_leaves("", plain)), **arrays}


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(f"{place}.{name}" if place else str(name), below)
    elif isinstance(value, list | tuple):
        for number, below in enumerate(value):
            yield from _leaves(f"{place}[{number}]", below)
    else:
        yield place, value


def _share(written: Any, follows: Any) -> float:
    """Compute the difference as a share: 0 for equal values, infinite for incomparable ones."""
    one, other = np.asarray(written), np.asarray(follows)
    if one.shape != other.shape:
        return np.inf
    if not (np.issubdtype(one.dtype, np.number) and np.issubdtype(other.dtype, np.number)):
        return 0.0 if np.array_equal(one, other) else np.inf
    first, second = np.atleast_1d(one.astype(float)), np.atleast_1d(other.astype(float))
    scale = np.maximum(1.0, np.maximum(np.abs(first), np.abs(second)))
    with np.errstate(invalid="ignore"):
        shares = np.abs(first - second) / scale
    shares[(first == second) | (np.isnan(first) & np.isnan(second))] = 0.0
    return float(np.nan_to_num(shares, nan=np.inf).max(initial=0.0))
