"""The log folded from its beginning, step by step, for others to look at on the way; and two states
held against each other."""

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
    # As the proxy does: with more threads, sums round otherwise.
    threadpool_limits(limits=1, user_api="blas")
    encoder = load_encoder(settings.encoder)
    return {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}


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
            self.begins[name] = begin(engine, await snapshots.base_of(self._database, name), start)
        self.position = min(self.begins.values(), default=0)

    async def to(self, position: int, saw: Callable[[Entry], None] = lambda entry: None) -> None:
        """Fold on up to there; ``saw`` is called with each entry of these zoos once it is folded
        in. Raises UnreadableLogError."""
        async for entry in self._entries(position):
            engine = self.engines.get(entry.zoo)
            if engine is None or entry.position <= self.begins.get(entry.zoo, 0):
                continue
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


# The comparison: numbers, arrays and words by their place, equal to the bit, or where they differ
# most.

ROUNDING = 1e-6
"""What another processor, another numpy or another order of adding may make of the same numbers,
relative to them."""
Places = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest one: ``share`` of the greater number, at ``place``."""

    place: str
    share: float

    @property
    def is_rounding(self) -> bool:
        """Whether the same log may have led to both."""
        return self.share <= ROUNDING


def difference(written: Places, follows: Places) -> Difference:
    """Find the largest difference between two of the same places, of which there are some."""
    places = sorted(written.keys() | follows.keys())
    found = (Difference(each, _share(written.get(each), follows.get(each))) for each in places)
    return max(found, key=lambda each: each.share)


def difference_of_states(written: ZooState, follows: ZooState) -> Difference | None:
    """Find the largest difference; None where both are the same to the bit."""
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
    """Compute the difference as a share: 0 for equal values, infinite for what cannot be
    compared."""
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
