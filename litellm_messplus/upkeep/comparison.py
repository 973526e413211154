"""Two states held against each other: equal to the bit, or where they differ most."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.learning import snapshot
from litellm_messplus.learning.zoo_state import ZooState

ROUNDING = 1e-6
"""What another processor, or another numpy, may make of the same sums, relative to them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest one: ``share`` of the greater number, at ``place`` in the state."""

    place: str
    share: float

    @property
    def is_rounding(self) -> bool:
        """Whether the same log may have led to both."""
        return self.share <= ROUNDING


def difference(one: ZooState, other: ZooState) -> Difference | None:
    """None where both are the same to the bit."""
    if snapshot.dump(one) == snapshot.dump(other):
        return None
    numbers, others = _numbers(one), _numbers(other)
    found = [
        Difference(place, _share(numbers.get(place), others.get(place)))
        for place in sorted(numbers.keys() | others.keys())
    ]
    return max(found, key=lambda each: each.share)


def _numbers(state: ZooState) -> dict[str, NDArray[Any]]:
    plain, arrays = snapshot.taken(state)
    return {place: np.asarray(value) for place, value in _leaves("", plain)} | dict(arrays)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(f"{place}.{name}" if place else str(name), below)
    elif isinstance(value, list | tuple):
        for number, below in enumerate(value):
            yield from _leaves(f"{place}[{number}]", below)
    else:
        yield place, value


def _share(one: NDArray[Any] | None, other: NDArray[Any] | None) -> float:
    """0 for equal values, 1 or more for what cannot be compared."""
    if one is None or other is None or one.shape != other.shape:
        return np.inf
    if one.tobytes() == other.tobytes() and one.dtype == other.dtype:
        return 0.0
    if not (np.issubdtype(one.dtype, np.number) and np.issubdtype(other.dtype, np.number)):
        return 0.0 if np.array_equal(one, other) else np.inf
    first, second = np.atleast_1d(one.astype(float)), np.atleast_1d(other.astype(float))
    scale = np.maximum(1.0, np.maximum(np.abs(first), np.abs(second)))
    with np.errstate(invalid="ignore"):
        shares = np.abs(first - second) / scale
    shares[first == second] = 0.0
    shares[np.isnan(first) & np.isnan(second)] = 0.0
    return float(np.nan_to_num(shares, nan=np.inf).max(initial=0.0))
