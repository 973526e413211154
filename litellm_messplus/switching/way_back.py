"""Sequential tests, valid at every look, of whether a zoo must return to what served before.

Each test is a confidence sequence (`certificate/sequence.py`), right at all looks together. A zoo
that was good for long and turns bad must not wait until its whole past is outweighed, so a test
also looks at windows, which begin at every ``BLOCK``-th routed request. The windows share the
probability of a false alarm: the first has the most, and all together have each test's share of
``FALSE_ALARMS``.

The router may serve a stretch below alpha on credit saved up before (its queue keeps it), so what
was saved before a window counts for it.

Every test must hold without any one key too, and an error that a client causes itself is no
evidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.certificate.sequence import (
    Vector,
    is_surely_below,
    rate_bounds,
)

FALSE_ALARMS = 0.05
"""The probability that a zoo which keeps its promise ever returns."""
TESTS = 2
"""Number of tests (rate, errors), sharing ``FALSE_ALARMS`` equally."""
BLOCK = 50
"""Routed requests from one window's beginning to the next."""
FEWEST = 50
"""Requests of each arm before errors are compared."""
CREDIT = 30.0
"""Satisfied requests that the queue saves up at most."""
MORE_ERRORS = 0.01
"""Allowed excess of the share of errors over that as before."""

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Served:
    """One request, in the order of the log. ``satisfaction`` is None without a label, and then
    ``weight`` means nothing; ``has_failed`` is None if it has not ended, or ended with an error of
    the client's own.
    """

    level: str
    alpha: float
    is_routed: bool
    satisfaction: float | None = None
    weight: float = 1.0
    has_failed: bool | None = None
    key: str | None = None


def reason_to_return(served: Sequence[Served]) -> str | None:
    """Return the reason for which the zoo must return; None if there is none."""
    return _rate_too_low(served) or _more_errors(served)


# Evidence that is spread over keys. One client alone must not move a shared zoo, by a wrong
# parameter or on purpose. A test has to hold for the requests of all keys, and again for those of
# all but one, whichever key is left out: with or without it, a false return is a false alarm of a
# test that is right at all looks.
#
# The price is time. With K keys that send as much each, K - 1 of them must show it: of two keys
# each one on its own, of twelve eleven. A key that makes most of the requests counts in full,
# because the others are too few to compare it with; so does an only key.

COUNTS_IN_FULL = 0.75
"""The share of the requests from which a key counts in full."""


class Spread:
    """Requests by key: ``places`` is the number of each request's key."""

    def __init__(self, keys: Sequence[str | None]) -> None:
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        self._places = np.array([numbers[key] for key in keys], dtype=np.intp)
        requests = np.bincount(self._places, minlength=len(numbers))
        self._is_held = requests < COUNTS_IN_FULL * len(keys)

    def sums(self, values: Vector, chosen: Bits) -> Vector:
        """Add up the chosen requests: first of all keys, then of all but one, for each key that
        does not count in full."""
        places, values = self._places[chosen], values[chosen]
        own = np.bincount(places, weights=values, minlength=len(self._is_held))
        total = values.sum()
        return np.concatenate(([total], total - own[self._is_held]))

    def shown(self, bad: Bits, chosen: Bits) -> str:
        """Write how many keys of the chosen requests have a bad one."""
        having, all_keys = (len(np.unique(self._places[each])) for each in (chosen & bad, chosen))
        return f"keys: {having} of {all_keys}"


# The windows.


def _windows(routed: int, parts: int = 1) -> Iterator[tuple[int, float]]:
    """Yield where windows of so many routed requests begin, and the logarithm that bets against a
    rate must make to reject it; ``parts`` share a window's probability.

    Only the windows of 1, 2, 4, ... blocks are looked at, and the whole.
    """
    blocks, back = routed // BLOCK, 1
    places = {0}
    while back < blocks:
        places.add(blocks - back)
        back *= 2
    for place in sorted(places):
        yield place * BLOCK, log(parts * TESTS * (place + 1) * (place + 2) / FALSE_ALARMS)


def _since(count: int, start: int) -> Bits:
    """Mark those of so many requests from a place on."""
    return np.arange(count) >= start


def _counts(spread: Spread, is_bad: Bits, chosen: Bits) -> tuple[Vector, Vector]:
    """Count the bad ones of the chosen requests, and all of them."""
    return spread.sums(is_bad.astype(np.float64), chosen), spread.sums(np.ones(len(is_bad)), chosen)


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
    weights = np.array([each.weight if each.satisfaction is not None else 0.0 for each in own])
    alphas = np.array([each.alpha for each in own])
    gained = (np.array([each.satisfaction or 0.0 for each in own]) - alphas) * weights
    spread, everything = Spread([each.key for each in own]), _since(len(own), 0)
    # Labels of different weights are worth so many equal ones per unit of weight.
    scale = spread.sums(weights, everything) / _above_zero(spread.sums(weights**2, everything))
    saved = _saved(gained * scale[0])
    for start, made in _windows(len(own), parts=levels):
        chosen = _since(len(own), start)
        weight, surplus = spread.sums(weights, chosen), spread.sums(gained, chosen)
        alpha = spread.sums(alphas * weights, chosen) / _above_zero(weight)
        trials = scale * weight
        yes = np.clip(scale * surplus + alpha * trials + saved[start], 0.0, trials)
        if is_surely_below(yes, trials, alpha, made).all():
            rate = surplus[0] / weight[0] + alpha[0]
            return (
                f"{level}: {100.0 * rate:.1f} % satisfied of the last {len(own) - start} requests, "
                f"promised {100.0 * alpha[0]:.1f} % ({spread.shown(gained < 0.0, chosen)})"
            )
    return None


def _above_zero(values: Vector) -> Vector:
    return np.maximum(values, 1e-12)


def _saved(gained: Vector) -> Vector:
    """Compute what was saved up before each request, as the queue keeps it."""
    saved, before = np.zeros(len(gained) + 1), 0.0
    for place, each in enumerate(gained):
        before = min(max(before + float(each), 0.0), CREDIT)
        saved[place + 1] = before
    return saved


# Errors, compared with the requests served as before at the same time.


def _arms(served: Sequence[Served]) -> Iterator[tuple[float, Bits, Bits]]:
    """Yield, by window, the logarithm to be made, and the requests of both arms in it."""
    is_routed = np.array([each.is_routed for each in served], dtype=np.bool_)
    places = np.flatnonzero(is_routed)
    for start, made in _windows(len(places)):
        since = _since(len(served), int(places[start]) if len(places) else 0)
        routed, before = is_routed & since, ~is_routed & since
        if min(routed.sum(), before.sum()) >= FEWEST:
            yield made, routed, before


def _more_errors(served: Sequence[Served]) -> str | None:
    ended = [each for each in served if each.has_failed is not None]
    failed = np.array([bool(each.has_failed) for each in ended], dtype=np.bool_)
    spread = Spread([each.key for each in ended])
    for made, routed, before in _arms(ended):
        (yes, trials), (usual, others) = (_counts(spread, failed, arm) for arm in (routed, before))
        if min(trials.min(), others.min()) < FEWEST:
            continue
        if (yes / trials <= usual / others + MORE_ERRORS).any():
            continue  # no bound lies beyond its mean
        low, _ = rate_bounds(yes, trials, made)
        _, high = rate_bounds(usual, others, made)
        if (low > high + MORE_ERRORS).all():
            return (
                f"errors: {failed[routed].mean():.1%} of routed requests, "
                f"{failed[before].mean():.1%} before ({spread.shown(failed, routed)})"
            )
    return None
