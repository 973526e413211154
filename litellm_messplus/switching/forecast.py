"""What routing would cost and satisfy, from requests that were served as before and decided aside.

Of every such request it is known what the router would have chosen, and what was predicted of that
choice. Of some, that model was called: because it served anyway, or unseen, for a sample. There the
prediction's error is seen, and corrects the mean prediction: the estimate is doubly robust, right
where the predictions are right on average or the sample is a fair one. Those called are a fair
sample of two strata apart: the requests that the choice serves anyway, and the others. Whoever
answered stands for the rest of the same stratum.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean
from typing import Any

CONFIDENCE = 0.9
"""How often the truth lies within the interval: nine forecasts of ten."""
STRETCH = 100
"""Requests after one another whose costs hang together: the router learns, and at times pays for
what it has missed."""
FEWEST = 10
"""Errors seen in a stratum before anything is said of it."""

_QUANTILE = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)


@dataclass(frozen=True, slots=True)
class DecidedAside:
    """One request that was decided aside. ``is_seen`` where the choice is the model that served
    anyway. ``satisfaction`` and ``cost`` are those of the choice's answer, None where it is not
    known; ``expected_cost`` is of that answer, and ``beside`` of the calls that the router would
    have made beside it. Requests of one ``conversation`` are not independent."""

    conversation: float | str
    predicted: float
    expected_cost: float
    is_seen: bool
    satisfaction: float | None = None
    cost: float | None = None
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate, and between which values it lies."""

    estimate: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Tell whether a value lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast over so many ``requests``: share satisfied and cost of a request, each None
    where too little is known. ``called`` counts the requests whose choice was called and judged."""

    requests: int
    called: int
    satisfaction: Range | None
    cost: Range | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Happened:
    """The figures of requests that were routed: ``satisfaction`` of those ``answered``, and
    ``cost`` of a request; None where nobody knows."""

    requests: int
    answered: int
    satisfaction: float | None
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def forecast(aside: Sequence[DecidedAside]) -> Forecast:
    """Estimate what routing would come to, from requests that were decided aside."""
    satisfied = _estimate(
        [(each, each.predicted, each.satisfaction) for each in aside], highest=1.0, is_steered=True
    )
    costs = [
        (each, each.expected_cost + each.beside, _with(each.cost, each.beside)) for each in aside
    ]
    return Forecast(
        requests=len(aside),
        called=sum(each.satisfaction is not None for each in aside),
        satisfaction=satisfied,
        cost=_estimate(costs, highest=math.inf, is_steered=False),
    )


def _with(cost: float | None, beside: float) -> float | None:
    return None if cost is None else cost + beside


Figure = tuple[DecidedAside, float, float | None]
"""A request, what was expected of it, and what came, where that is known."""


def _estimate(figures: Sequence[Figure], highest: float, *, is_steered: bool) -> Range | None:
    """Correct the mean of what was expected by the errors seen; None where a stratum shows too
    few."""
    counted = _strata(figures)
    if not figures or any(seen < min(FEWEST, total) for total, seen in counted.values()):
        return None
    values = []
    for request, expected, came in figures:
        value = expected
        if came is not None:
            total, seen = counted[request.is_seen]
            value += (came - expected) * total / seen
        values.append(value)
    conversations = [request.conversation for request, _, _ in figures]
    return _range(values, conversations, highest, is_steered=is_steered)


def _strata(figures: Iterable[Figure]) -> Mapping[bool, tuple[int, int]]:
    """Count the requests of each stratum, and those whose error is seen."""
    counted: dict[bool, tuple[int, int]] = {}
    for request, _, came in figures:
        total, seen = counted.get(request.is_seen, (0, 0))
        counted[request.is_seen] = total + 1, seen + (came is not None)
    return counted


def _range(
    values: Sequence[float],
    conversations: Sequence[Any],
    highest: float,
    *,
    is_steered: bool,
) -> Range:
    """Average, with the interval in which the average of as many requests to come will lie.

    What the queue steers hardly varies from one stretch to the next, so the sample's error is all
    there is. What it does not steer drifts while the router learns, in the requests to come too.
    """
    mean = fmean(values)
    errors = [value - mean for value in values]
    squares, quantile = _between(errors, conversations), _QUANTILE
    if not is_steered:
        stretches = [place // STRETCH for place in range(len(errors))]
        squares = 2.0 * max(squares, _between(errors, stretches))
        quantile = _of_student(stretches[-1])
    half = quantile * math.sqrt(squares) / len(values)
    low, high = max(mean - half, 0.0), min(mean + half, highest)
    return Range(min(max(mean, 0.0), highest), low, high)


def _of_student(freedom: int) -> float:
    """Compute the quantile of Student's distribution, by the first term of its expansion."""
    return _QUANTILE + (_QUANTILE**3 + _QUANTILE) / (4.0 * max(freedom, 1))


def _between(errors: Sequence[float], groups: Iterable[Any]) -> float:
    """Sum up the squares of what groups are off, which has all that makes their requests alike."""
    sums: dict[Any, float] = defaultdict(float)
    for error, group in zip(errors, groups, strict=True):
        sums[group] += error
    few = len(sums) / max(len(sums) - 1, 1)
    return few * sum(each * each for each in sums.values())
