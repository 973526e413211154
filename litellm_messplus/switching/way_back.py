"""When a zoo returns to what served before: sequential tests, which may look as often as they like.

Each test is a confidence sequence (`certificate/sequence.py`), right at all looks together. A zoo
that was good for long and turns bad must not wait until its whole past is outweighed, so a test
looks at windows too, which begin at every ``BLOCK``-th routed request. The windows share the
probability of a false alarm: the first has the most, and all together have ``FALSE_ALARMS`` for
each test's share of it.

The router may serve a stretch below alpha that it has saved up before (its queue keeps credit), so
what was saved before a window counts for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.certificate.sequence import (
    Vector,
    is_surely_above,
    is_surely_below,
    rate_bounds,
)

FALSE_ALARMS = 0.05
"""The probability that a zoo which keeps its promise ever returns."""
TESTS = 4
"""The rate, errors, latency, and missed deadlines: each has as much of it."""
BLOCK = 50
"""Routed requests from one window's beginning to the next."""
FEWEST = 50
"""Requests of each arm before errors and latency are compared."""
CREDIT = 30.0
"""Satisfied requests that the queue saves up at most."""
SLOW = 0.95
"""The quantile of latency that is compared."""
SLOWER = 1.25
"""How many times as long it may be."""
MORE_ERRORS = 0.01
"""By how much the share of errors may be higher."""
MOST_MISSED = 0.01
"""The share of requests that may miss their deadline, or fail to be routed."""

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Served:
    """One request, in the order of the log. ``satisfaction`` is None where nobody judged it, and
    then ``weight`` means nothing; ``has_failed`` and ``seconds`` are None where it has not ended.
    """

    level: str
    alpha: float
    is_routed: bool
    satisfaction: float | None = None
    weight: float = 1.0
    has_failed: bool | None = None
    seconds: float | None = None


def reason_to_return(served: Sequence[Served]) -> str | None:
    """Say why the zoo must return; None where nothing speaks for it."""
    for found in (_rate_too_low(served), _more_errors(served), _slower(served)):
        if found is not None:
            return found
    return None


def missed_too_often(missed: Sequence[bool]) -> str | None:
    """Say that too many routed requests missed their deadline, or were not routed."""
    marks = np.array(missed, dtype=np.float64)
    for start, made in _windows(len(marks)):
        yes, trials = np.array([marks[start:].sum()]), np.array([float(len(marks) - start)])
        if is_surely_above(yes, trials, MOST_MISSED, made).any():
            share = marks[start:].mean()
            return f"{share:.1%} of the last {len(marks) - start} requests missed their deadline"
    return None


def _windows(routed: int, parts: int = 1) -> Iterator[tuple[int, float]]:
    """Yield where windows of so many routed requests begin, and what must be made against a rate
    before it is given up, as a logarithm; ``parts`` share a window's probability.

    Of all windows only those of 1, 2, 4, ... blocks are looked at, and the whole.
    """
    blocks, back = routed // BLOCK, 1
    places = {0}
    while back < blocks:
        places.add(blocks - back)
        back *= 2
    for place in sorted(places):
        yield place * BLOCK, log(parts * TESTS * (place + 1) * (place + 2) / FALSE_ALARMS)


def _bounds(yes: float, trials: float, made: float) -> tuple[float, float]:
    low, high = rate_bounds(np.array([yes]), np.array([trials]), made)
    return float(low[0]), float(high[0])


# The rate of each service level against its alpha.


def _rate_too_low(served: Sequence[Served]) -> str | None:
    levels = sorted({each.level for each in served if each.is_routed})
    for level in levels:
        own = [each for each in served if each.is_routed and each.level == level]
        found = _level_too_low(level, own, len(levels))
        if found is not None:
            return found
    return None


def _level_too_low(level: str, own: Sequence[Served], levels: int) -> str | None:
    gained, trials, alpha = _verdicts(own)
    saved = _saved(gained)
    for start, made in _windows(len(own), parts=levels):
        counted = trials[start:].sum()
        if counted <= 0.0:
            continue
        mean_alpha = float((alpha[start:] * trials[start:]).sum() / counted)
        yes = gained[start:].sum() + mean_alpha * counted + saved[start]
        yes, trialled = np.array([np.clip(yes, 0.0, counted)]), np.array([counted])
        if is_surely_below(yes, trialled, mean_alpha, made).any():
            rate = 100.0 * (gained[start:].sum() / counted + mean_alpha)
            return (
                f"{level}: {rate:.1f} % satisfied of the last {len(own) - start} requests, "
                f"promised {100.0 * mean_alpha:.1f} %"
            )
    return None


def _verdicts(own: Sequence[Served]) -> tuple[Vector, Vector, Vector]:
    """Give, by request, what its verdict gains on alpha, and as how many equal verdicts it
    counts: where weights differ, they say less than as many equal ones."""
    weights = np.array([each.weight if each.satisfaction is not None else 0.0 for each in own])
    scale = weights.sum() / max(float((weights**2).sum()), 1e-12)
    trials = weights * scale
    alpha = np.array([each.alpha for each in own])
    values = np.array([each.satisfaction or 0.0 for each in own])
    return (values - alpha) * trials, trials, alpha


def _saved(gained: Vector) -> Vector:
    """Give what was saved up before each request, as the queue keeps it."""
    saved, before = np.zeros(len(gained) + 1), 0.0
    for place, each in enumerate(gained):
        before = min(max(before + float(each), 0.0), CREDIT)
        saved[place + 1] = before
    return saved


# Errors and latency, against those who were served as before at the same time.


def _arms(served: Sequence[Served]) -> tuple[Bits, list[int]]:
    """Mark the routed requests, and give the place of each."""
    is_routed = np.array([each.is_routed for each in served], dtype=np.bool_)
    return is_routed, [int(place) for place in np.flatnonzero(is_routed)]


def _more_errors(served: Sequence[Served]) -> str | None:
    ended = [each for each in served if each.has_failed is not None]
    is_routed, places = _arms(ended)
    failed = np.array([bool(each.has_failed) for each in ended], dtype=np.float64)
    for start, made in _windows(len(places), parts=2):
        arms = _since(failed, is_routed, places[start] if places else 0)
        if arms is None:
            continue
        routed, before = arms
        if routed.mean() <= before.mean() + MORE_ERRORS:
            continue  # no bound lies beyond its mean
        low, _ = _bounds(float(routed.sum()), len(routed), made)
        _, high = _bounds(float(before.sum()), len(before), made)
        if low > high + MORE_ERRORS:
            return f"errors: {routed.mean():.1%} of routed requests, {before.mean():.1%} before"
    return None


def _slower(served: Sequence[Served]) -> str | None:
    timed = [each for each in served if each.seconds is not None and not each.has_failed]
    is_routed, places = _arms(timed)
    seconds = np.array([each.seconds for each in timed], dtype=np.float64)
    for start, made in _windows(len(places), parts=2):
        arms = _since(seconds, is_routed, places[start] if places else 0)
        if arms is None:
            continue
        routed, before = (np.sort(arm) for arm in arms)
        least, most = _at_least(routed, made), _at_most(before, made)
        if least is not None and most is not None and least > SLOWER * most:
            shown = (float(np.quantile(arm, SLOW)) for arm in (routed, before))
            return "p95 latency: {:.2f} s of routed requests, {:.2f} s before".format(*shown)
    return None


def _since(values: Vector, is_routed: Bits, place: int) -> tuple[Vector, Vector] | None:
    """Take both arms from a place on; None where one has too few."""
    routed, before = values[place:][is_routed[place:]], values[place:][~is_routed[place:]]
    return (routed, before) if min(len(routed), len(before)) >= FEWEST else None


def _at_least(ordered: Vector, made: float) -> float | None:
    """Bound the quantile from below: the largest value which more than 5 % surely exceed.

    The count above the true quantile is one of trials with a known probability, so a bound on that
    rate bounds the quantile; no more need be paid for its being any of the values. Of the counts,
    those are tried between which the smallest sure one must lie.
    """
    count = len(ordered)
    usual = (1.0 - SLOW) * count
    most = min(count - 1, int(usual + 3.0 * (made * usual) ** 0.5 + 3.0 * made))
    above = np.arange(int(usual), most + 1, dtype=np.float64)
    surely = np.flatnonzero(
        is_surely_above(above, np.full(len(above), float(count)), 1.0 - SLOW, made)
    )
    return float(ordered[count - 1 - int(above[surely[0]])]) if len(surely) else None


def _at_most(ordered: Vector, made: float) -> float | None:
    """Bound the quantile from above: the smallest value which less than 5 % surely exceed."""
    count = len(ordered)
    above = np.arange(0, int((1.0 - SLOW) * count) + 1, dtype=np.float64)
    surely = np.flatnonzero(
        is_surely_below(above, np.full(len(above), float(count)), 1.0 - SLOW, made)
    )
    return float(ordered[count - 1 - int(above[surely[-1]])]) if len(surely) else None
