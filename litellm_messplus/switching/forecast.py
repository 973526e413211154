"""Forecast of cost and satisfaction with routing, from requests that were decided in shadow.

These requests were served as before, and for each the router's choice and its prediction are known.
For some, that model was called: because it served anyway, or unseen, for a sample. There the
prediction's error is seen, and corrects the mean prediction: the estimate is doubly robust, right
if the predictions are right on average or the sample is a fair one. Within each of two strata the
called requests are a fair sample: those that the choice serves anyway, and the others. The answered
ones stand for the rest of the same stratum.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, pvariance
from typing import Any

import numpy as np
from numpy.typing import NDArray

OF_SATISFACTION, OF_COST, OF_LUCK = 0.9, 0.98, 0.9
"""Confidence of each interval, so that both hold together nine times of ten: the interval of the
satisfaction also reaches to alpha if it can be held, and the cheapest mixes overstate what luck
costs."""
_QUANTILES = tuple(
    NormalDist().inv_cdf(0.5 + each / 2.0) for each in (OF_SATISFACTION, OF_COST, OF_LUCK)
)
SLACK = 10.0
"""Satisfied requests that the queue may owe, or have saved up, at any end of the count."""
STRETCH = 100
"""Consecutive requests whose costs are correlated: the router learns, and at times pays for what it
has missed."""
FEWEST = 10
"""Least number of errors seen in a stratum for a forecast."""


@dataclass(frozen=True, slots=True)
class DecidedAside:
    """One request that was decided in shadow. ``is_seen`` if the choice is the model that served
    anyway. ``satisfaction`` and ``cost`` are those of the choice's answer, None if unknown;
    ``expected_cost`` is of that answer, and ``extra_cost`` of the calls that the router would have
    made in addition. Requests of one ``conversation`` are not independent.

    ``largest`` is the cost of the largest alone, None if unknown. ``alpha`` is the promised share,
    ``costs`` and ``rates`` are the expectations of each candidate, and ``judged`` are the
    candidates with a judged answer to this request.
    """

    conversation: float | str
    predicted: float
    expected_cost: float
    is_seen: bool
    satisfaction: float | None = None
    cost: float | None = None
    extra_cost: float = 0.0
    alpha: float = 0.0
    costs: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    judged: tuple[str, ...] = ()
    largest: float | None = None

    @property
    def whole_cost(self) -> float | None:
        """The cost of the choice's answer and of the calls in addition to it."""
        return None if self.cost is None else self.cost + self.extra_cost


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate, and the interval around it."""

    estimate: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Tell whether a value lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast over ``requests`` requests: share satisfied, cost per request, and the share of
    the largest's cost that routing would have saved, each None if too little is known. ``called``
    counts the requests whose choice was called and judged."""

    requests: int
    called: int
    satisfaction: Range | None
    cost: Range | None
    would_have_saved: Range | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """The figures of requests that were routed: ``satisfaction`` of those ``answered``, and
    ``cost`` per request; None if unknown."""

    requests: int
    answered: int
    satisfaction: float | None
    cost: float | None


# The cost of luck. The queue makes up for bad luck, so it shows in the cost and not in the rate: a
# bad stretch raises the price of satisfaction, and moves requests to better models. The cheapest
# mixes show by how much: a little more satisfaction costs little as long as a cheap model can give
# it, and much beyond.

Matrix = NDArray[np.float64]

PRICES = np.concatenate([[0.0], np.geomspace(0.01, 1000.0, 60)])
"""Prices of one more satisfied request, in units of the cost difference between the most expensive
candidate and the cheapest: from one at which no request pays more to one at which all do."""


@dataclass(frozen=True, slots=True)
class Mixes:
    """The cheapest assignments of requests to candidates, from those of least cost to those of most
    satisfaction: ``rates`` rise, and ``costs`` with them."""

    rates: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        costs: Sequence[Mapping[str, float]],
        rates: Sequence[Mapping[str, float]],
        candidates: Collection[str],
    ) -> "Mixes":
        """Build the mixes from the expectations of these candidates for each request: at every
        price each request takes the candidate of least cost - price * satisfaction."""
        names = [name for name in sorted(candidates) if any(name in each for each in costs)]
        if not names:
            return cls()
        cost, rate = _matrix(costs, names, np.inf), _matrix(rates, names, 0.0)
        there = np.isfinite(cost).any(axis=1)
        cost, rate = cost[there], rate[there]
        means = np.nanmean(np.where(np.isfinite(cost), cost, np.nan), axis=0)
        spread, rows = float(np.ptp(means)), np.arange(len(cost))
        found = []
        for price in PRICES * spread:
            choice = (cost - price * rate).argmin(axis=1)
            found.append((rate[rows, choice].mean(), cost[rows, choice].mean()))
        rising = np.maximum.accumulate(np.array(found), axis=0)
        return cls(tuple(rising[:, 0].tolist()), tuple(rising[:, 1].tolist()))

    def can_steer(self, alpha: float) -> bool:
        """Tell whether a price holds alpha: whether alpha lies between the two ends."""
        return bool(self.rates) and self.rates[0] < alpha <= self.rates[-1]

    def extra(self, alpha: float, more: float) -> float:
        """Return the cost of ``more`` satisfaction than alpha, negative if ``more`` is; beyond the
        ends it does not change."""
        if not self.rates:
            return 0.0
        found: Sequence[float] = np.interp([alpha, alpha + more], self.rates, self.costs).tolist()
        return found[1] - found[0]


def _matrix(expected: Sequence[Mapping[str, float]], names: Sequence[str], absent: float) -> Matrix:
    return np.array([[each.get(name, absent) for name in names] for each in expected])


# The forecast.


def forecast(aside: Sequence[DecidedAside], upcoming: int | None = None) -> Forecast:
    """Estimate the outcome of routing ``upcoming`` requests, from requests that were decided in
    shadow; by default as many as those."""
    if not aside:
        return Forecast(0, 0, None, None)
    to_come = len(aside) if upcoming is None else upcoming
    rates = _corrected([(each, each.predicted, each.satisfaction) for each in aside])
    costs = _corrected(
        [(each, each.expected_cost + each.extra_cost, each.whole_cost) for each in aside]
    )
    mixes = _mixes(aside)
    cost = None if costs is None else _of_costs(aside, costs, rates, mixes, to_come)
    return Forecast(
        requests=len(aside),
        called=sum(each.satisfaction is not None for each in aside),
        satisfaction=None if rates is None else _of_rates(aside, rates, mixes, to_come),
        cost=cost,
        would_have_saved=_saved(cost, [e.largest for e in aside if e.largest is not None]),
    )


def _saved(cost: Range | None, largest: Sequence[float]) -> Range | None:
    """Compute the share of the largest's cost that is saved at such a cost."""
    alone = fmean(largest) if largest else 0.0
    if cost is None or alone <= 0.0:
        return None
    return Range(1.0 - cost.estimate / alone, 1.0 - cost.high / alone, 1.0 - cost.low / alone)


def _mixes(aside: Sequence[DecidedAside]) -> Mixes:
    """Find the cheapest mixes of the candidates with enough judged answers: expectations of the
    others are mostly hope."""
    counts = Counter(name for each in aside for name in each.judged)
    return Mixes.of(
        [each.costs for each in aside],
        [each.rates for each in aside],
        [name for name, count in counts.items() if count >= FEWEST],
    )


Figure = tuple[DecidedAside, float, float | None]
"""A request, its expected value, and the observed one if that is known."""


def _corrected(figures: Sequence[Figure]) -> list[float] | None:
    """Correct the expected value of each request by the errors seen, so that their mean is the
    estimate; None if a stratum shows too few."""
    counted = _strata(figures)
    if any(seen < min(FEWEST, total) for total, seen in counted.values()):
        return None
    values = []
    for request, expected, came in figures:
        value = expected
        if came is not None:
            total, seen = counted[request.is_seen]
            value += (came - expected) * total / seen
        values.append(value)
    return values


def _strata(figures: Iterable[Figure]) -> Mapping[bool, tuple[int, int]]:
    """Count the requests of each stratum, and those with a known error."""
    counted: dict[bool, tuple[int, int]] = {}
    for request, _, came in figures:
        total, seen = counted.get(request.is_seen, (0, 0))
        counted[request.is_seen] = total + 1, seen + (came is not None)
    return counted


# The intervals that will contain the mean of the requests to come.


def _of_rates(
    aside: Sequence[DecidedAside], rates: Sequence[float], mixes: Mixes, to_come: int
) -> Range:
    """Bound the satisfaction. If the queue can steer it, the sample's error is all there is, and
    alpha is inside, because what is owed or saved up by then is made up for. Otherwise the requests
    to come have their luck too."""
    alpha, variance = _alpha(aside), _of_mean(rates, _conversations(aside))
    if not mixes.can_steer(alpha):
        variance += _of_luck(aside, rates, [each.satisfaction for each in aside], to_come)
    half = _QUANTILES[0] * math.sqrt(variance)
    found = _range(fmean(rates), half, half, highest=1.0)
    if not mixes.can_steer(alpha):
        return found
    slack = SLACK / to_come
    return Range(
        found.estimate,
        min(found.low, max(alpha - slack, 0.0)),
        max(found.high, min(alpha + slack, 1.0)),
    )


def _of_costs(
    aside: Sequence[DecidedAside],
    costs: Sequence[float],
    rates: Sequence[float] | None,
    mixes: Mixes,
    to_come: int,
) -> Range:
    """Bound the cost: by its variance, by its drift while the router learns, and, if answers are
    judged, by the cost of luck in the requests seen and in those to come."""
    seen = [each.whole_cost for each in aside]
    own = _of_mean(costs, _conversations(aside)) + _of_luck(aside, costs, seen, to_come)
    stretches = [place // STRETCH for place in range(len(costs))]
    drift = _of_mean(costs, stretches) * (1.0 + len(costs) / to_come)
    half = _QUANTILES[1] * math.sqrt(max(own, drift))
    luck, alpha = 0.0, _alpha(aside)
    if rates is not None:
        judged = [each.satisfaction for each in aside]
        variance = _of_mean(rates, _conversations(aside))
        variance += _of_luck(aside, rates, judged, to_come)
        luck = _QUANTILES[2] * math.sqrt(variance)
    below, above = -mixes.extra(alpha, -luck), mixes.extra(alpha, luck)
    return _range(fmean(costs), math.hypot(below, half), math.hypot(above, half), highest=math.inf)


def _range(mean: float, below: float, above: float, *, highest: float) -> Range:
    low, high = max(mean - below, 0.0), min(mean + above, highest)
    return Range(min(max(mean, 0.0), highest), low, high)


def _alpha(aside: Sequence[DecidedAside]) -> float:
    return fmean(each.alpha for each in aside)


def _conversations(aside: Sequence[DecidedAside]) -> list[float | str]:
    return [each.conversation for each in aside]


def _of_luck(
    aside: Sequence[DecidedAside],
    values: Sequence[float],
    seen: Sequence[float | None],
    to_come: int,
) -> float:
    """Return the variance of the mean over the requests to come, from those seen, if conversations
    are as correlated as those of ``values``."""
    alone = _of_mean(values, range(len(values)))
    alike = _of_mean(values, _conversations(aside)) / alone if alone > 0.0 else 1.0
    return alike * pvariance([each for each in seen if each is not None]) / to_come


def _of_mean(values: Sequence[float], groups: Iterable[Any]) -> float:
    """Return the variance of a mean of groups, from the squared deviation of each group, whose
    requests may be correlated."""
    mean, sums = fmean(values), dict[Any, float]()
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value - mean
    few = len(sums) / max(len(sums) - 1, 1)
    return few * sum(each * each for each in sums.values()) / len(values) ** 2
