"""Confidence sequences: intervals that hold at every look, not only at one chosen beforehand.

Looking at an ordinary interval of 95 % after every hundred requests, and stopping at a pleasant
one, is wrong far more often than one time in twenty. A confidence sequence is right at all looks
together with its stated probability. Both in this module rest on Ville's inequality (J. Ville,
"Etude critique de la notion de collectif", 1939): a process that is never negative, starts at 1 and
never grows in expectation exceeds 1 / a at any time with probability a at most.

`SampledSums` is about the sum of ``error`` over all requests of a stream, of which a sample is
seen: each with a known probability, by a draw independent of all else (inverse probability
weighting, as in Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, "Anytime-valid off-policy
inference for contextual bandits", 2022). ``error`` is a label minus its expectation, from 0 to 1:
any that is fixed before the label is drawn, from earlier labels too. The sum of the expectations is
known, and the better they are, the narrower is the interval. With a draw A of probability p, and
for any rate of betting r below -log(1 - p),

    exp(r (A / p - 1) error - A cost(r, error, p)),
    cost(r, error, p) = u (1 - p) / p - log(1 + (1 - exp(-u)) (1 - p) / p),  u = r error,

is exactly 1 in expectation, so its product over the requests is such a process. It needs the errors
of labelled requests alone, and a label that was certain (p = 1) costs nothing. The best r depends
on the number of labels, so money is put on a grid of rates: a mixture of such processes is one too.

`rate_bounds` is about a share of yes and no: the mixture of all rates by Jeffreys' prior against
the true one (H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals
of Mathematical Statistics 41, 1970; as a confidence sequence: Waudby-Smith and Ramdas, "Confidence
sequences for sampling without replacement", 2020).
"""

from math import inf, lgamma, log, pi

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

GRID = 12
FACTOR = 3.0**0.5
"""Ratio of each rate of betting to the next lower one: narrow from some 50 labels to 500,000. The
higher rates, which are best for fewer labels, get more of the money."""
HIGHEST = 0.9
"""The highest rate, as a share of the one at which the cost has no bound."""
LEAST_PROBABILITY = 0.0005
"""Least probability of a label: a rarer one shows next to nothing of the others."""
NEWTON = 8
"""Newton steps: to the last digit. The error of fewer is to the outside, and only widens."""
STEPS = 25
"""Halvings of [0, 1] in search of a rate: to 3e-8, with the error to the outside too."""

_MONEY = FACTOR ** (-0.5 * np.arange(GRID))
_LOG_MONEY = np.log(_MONEY / _MONEY.sum() / 2.0)
"""Log money by rate: half is put on errors that are too high, half on those too low."""


def betting_rates(least_probability: Vector) -> Vector:
    """Return the grid of each stream, for draws of at least that probability."""
    most = -np.log1p(-np.clip(least_probability, LEAST_PROBABILITY, 1.0 - 1e-9))
    return np.asarray(HIGHEST * np.multiply.outer(most, FACTOR ** -np.arange(GRID)))


def cost(rates: Vector, error: Vector, probability: Vector) -> Vector:
    """Return what a labelled request costs each bet of its stream."""
    odds = ((1.0 - probability) / probability)[..., None]
    stake = rates * error[..., None]
    return np.asarray(stake * odds - np.log1p(-np.expm1(-stake) * odds))


class SampledSums:
    """Sums of many streams at once, one vector element each: the weighted sum of its errors, and
    the cost of every bet.

    The memory is fixed: a few numbers for each rate and stream, however many labels come, and the
    order of the labels changes nothing.
    """

    def __init__(self, least_probability: Vector) -> None:
        self._least = np.maximum(least_probability, LEAST_PROBABILITY)
        self._rates = betting_rates(least_probability)
        self._labels = np.zeros_like(self._least)
        self._weighted = np.zeros_like(self._least)
        self._above = np.zeros_like(self._rates)
        self._below = np.zeros_like(self._rates)

    def add(self, error: Vector, probability: Vector, count: Vector) -> None:
        """Add labelled requests to each stream, ``count`` alike: their error, from -1 to 1, and the
        probability of a label. Raises ValueError for an invalid probability, or one below the least
        that was announced."""
        if np.any((count > 0.0) & ((probability > 1.0) | (probability < self._least - 1e-12))):
            raise ValueError("a label was less likely than announced, or more than certain")
        self._labels += count
        self._weighted += count * error / probability
        self._above += count[..., None] * cost(self._rates, error, probability)
        self._below += count[..., None] * cost(self._rates, -error, probability)

    @property
    def estimate(self) -> Vector:
        """The sums over all requests, estimated from the sample."""
        return self._weighted

    def least_made(self, noise: Vector | float = 0.0) -> Vector:
        """Return the logarithm of what the bets have made if the estimate is the truth: about the
        least possible."""
        spent = self._spent(noise)
        return _made(self._rates, spent, np.zeros_like(self._least))[0]

    def bounds(self, made: Vector | float, noise: Vector | float = 0.0) -> tuple[Vector, Vector]:
        """Return bounds of the sums over all requests, within which the bets have made no more than
        exp(``made``) of 1; all values without a label. With ``made`` the logarithm of 1 / a, the
        truth is outside at any look with probability a at most.

        ``noise`` is the number of random values from 0 to 1 around the sums: each adds an eighth of
        the square of the rate to what a bet costs (Hoeffding's lemma).
        """
        above, below = self._spent(noise)
        deviations = (
            np.where(self._labels > 0.0, _largest(self._rates, spent, made), inf)
            for spent in ((above, below), (below, above))
        )
        return self._weighted - next(deviations), self._weighted + next(deviations)

    def _spent(self, noise: Vector | float) -> tuple[Vector, Vector]:
        added = np.asarray(noise)[..., None] * self._rates**2 / 8.0
        return self._above + added, self._below + added


def _largest(rates: Vector, spent: tuple[Vector, Vector], made: Vector | float) -> Vector:
    """Find the deviation at which the bets have made exp(``made``), by Newton's steps from above:
    the logarithm of what they made is convex, so no step overshoots."""
    wanted = np.asarray(made)[..., None] - _LOG_MONEY
    deviation = np.asarray(((wanted + spent[0]) / rates).min(axis=-1))
    for _ in range(NEWTON):
        found, slope = _made(rates, spent, deviation)
        step = np.maximum(found - made, 0.0) / np.maximum(slope, 1e-12)
        deviation = np.maximum(deviation - step, 0.0)
    return deviation


def _made(rates: Vector, spent: tuple[Vector, Vector], deviation: Vector) -> tuple[Vector, Vector]:
    """Return the logarithm of what bets of both signs have made, and its derivative."""
    staked = rates * deviation[..., None]
    won = np.concatenate([staked - spent[0] + _LOG_MONEY, -staked - spent[1] + _LOG_MONEY], axis=-1)
    highest = won.max(axis=-1, keepdims=True)
    shares = np.exp(won - highest)
    total = shares.sum(axis=-1)
    slope = (shares * np.concatenate([rates, -rates], axis=-1)).sum(axis=-1) / total
    return np.log(total) + highest[..., 0], slope


_log_gamma = np.vectorize(lgamma, otypes=[np.float64])


def least_made(yes: Vector, trials: Vector) -> Vector:
    """Return the logarithm of what betting against the likeliest rate has made."""
    return np.asarray(_mixed(yes, trials) - _log_likelihood(yes, trials - yes, _share(yes, trials)))


def rate_bounds(yes: Vector, trials: Vector, made: Vector | float) -> tuple[Vector, Vector]:
    """Return the bounds of a rate of ``yes`` in ``trials``, within which betting against it has
    made no more than exp(``made``) of 1; 0 and 1 without trials."""
    no, share = trials - yes, _share(yes, trials)
    least = _mixed(yes, trials) - made
    return (
        _edge(yes, no, least, np.zeros_like(share), share),
        _edge(yes, no, least, np.ones_like(share), share),
    )


def is_surely_below(
    yes: Vector, trials: Vector, rate: Vector | float, made: float
) -> NDArray[np.bool_]:
    """Tell whether the true rate is below ``rate``, as its upper bound would be. This takes one
    likelihood, a bound one per halving."""
    likelihood = _log_likelihood(yes, trials - yes, np.full_like(trials, rate))
    is_doubted = likelihood < _mixed(yes, trials) - made
    return np.asarray((_share(yes, trials) < rate) & is_doubted)


def _share(yes: Vector, trials: Vector) -> Vector:
    return np.where(trials > 0.0, yes / np.maximum(trials, 1.0), 0.5)


def _mixed(yes: Vector, trials: Vector) -> Vector:
    """Return the logarithm of the likelihood under all rates, by Jeffreys' prior."""
    found = _log_gamma(yes + 0.5) + _log_gamma(trials - yes + 0.5) - _log_gamma(trials + 1.0)
    return np.asarray(found - log(pi))


def _edge(yes: Vector, no: Vector, least: Vector, outer: Vector, inner: Vector) -> Vector:
    """Find where the likelihood passes the least that is believed, between an end of [0, 1] and a
    rate that is believed."""
    is_open = _log_likelihood(yes, no, outer) >= least
    inside, outside = inner, outer
    for _ in range(STEPS):
        middle = (inside + outside) / 2.0
        is_believed = _log_likelihood(yes, no, middle) >= least
        inside = np.where(is_believed, middle, inside)
        outside = np.where(is_believed, outside, middle)
    return np.where(is_open, outer, outside)


def _log_likelihood(yes: Vector, no: Vector, rate: Vector) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(yes > 0, yes * np.log(rate), 0.0)
        misses = np.where(no > 0, no * np.log1p(-rate), 0.0)
    return np.where(np.isnan(hits + misses), -inf, hits + misses)
