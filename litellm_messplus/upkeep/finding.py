"""What a check found."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.state import snapshot
from litellm_messplus.state.zoo_state import ZooState

# Two states held against each other: equal to the bit, or where they differ most.

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
    """Find the largest difference; None where both are the same to the bit."""
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
    """Compute the difference as a share: 0 for equal values, 1 or more for what cannot be
    compared."""
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


class Outcome(StrEnum):
    """The outcomes of a check. A note says what is worth knowing and is no damage."""

    SOUND = "sound"
    NOTE = "note"
    SKIPPED = "skipped"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finding of a check; ``advice`` says what to do, where there is something to do."""

    check: str
    outcome: Outcome
    told: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.told}: {self.advice}" if self.advice else self.told


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All findings on one database, which is shown without its password."""

    database: str
    findings: tuple[CheckResult, ...]

    @property
    def wrong(self) -> list[CheckResult]:
        """The findings that need something to be done."""
        return [finding for finding in self.findings if finding.outcome is Outcome.WRONG]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "database": self.database,
            "is_sound": not self.wrong,
            "findings": [asdict(finding) for finding in self.findings],
        }


def some(of: Iterable[object], count: int) -> str:
    """Write the first few in words, of so many."""
    shown = [str(each) for each in of]
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
