"""The share satisfied of all requests, unlabelled ones included, as far as labels prove it.

The share is of the requests that were served, each with the satisfaction that its user would state;
requests to come are not covered. Words of users are taken as they are, without estimation. The
silent rest is estimated from a sample, in one of three ways:

- `judge`: a judge grades requests picked by a draw, whether their users answer or not. Its error
  rates in both directions are measured on requests that a user labelled too, and its verdict on the
  silent ones is corrected by them, with the least favourable errors that these pairs allow (the
  point estimate is that of Rogan and Gladen, "Estimating prevalence from the results of a screening
  test", American Journal of Epidemiology 107, 1978). Without any user's word it is trusted.
- `draws`: no judge, but labels that were requested by draws of known probability.
- `answers`: neither. Users who answered stand for those who did not, with the weights of the
  configured response bias. That is an assumption, and no number of labels proves it.

In all of them the sample estimates no more than what the predictions missed: each request has an
expected satisfaction, fixed before its label is drawn, whose sum over all requests is known. Any
such expectation leaves the bounds valid, and the better it is the narrower they are (a control
variate, see `sequence`).

All numbers are vectors with one element per promise, so that a benchmark computes many at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

import numpy as np

from litellm_messplus.certificate import sequence
from litellm_messplus.certificate.sequence import SampledSums, Vector, rate_bounds

SATISFIED = 0.5
"""Least word or grade that counts as satisfied when the judge is compared with users."""
PARTS = 6
"""Parts into which the bound on the evidence about three unknowns is split; with 12 the interval is
wider by less than a hundredth."""


class Sampling(StrEnum):
    """The method by which the satisfaction of silent requests is known."""

    JUDGE = "judge"
    DRAWS = "draws"
    ANSWERS = "answers"


@dataclass(frozen=True, eq=False)
class LabelGroup:
    """A group of requests with the same labels, and their ``count``.

    ``word`` is the label of a user or a check, and ``grade`` the judge's; None without one.
    ``expected`` is the satisfaction expected of each before its label, from 0 to 1. ``weight`` is
    the word's. ``probability`` is that of the draw of the label: of the grade if there is one; None
    if it was not drawn, or its probability was not recorded.
    """

    count: Vector
    word: float | None
    grade: float | None
    expected: float
    weight: float = 1.0
    probability: float | None = None


Groups = Sequence[LabelGroup]


@dataclass(frozen=True, eq=False)
class Bounds:
    """The share satisfied of all requests, and its bounds, which hold at every look."""

    rate: Vector
    low: Vector
    high: Vector
    sampling: Sampling


def sampling_of(groups: Groups) -> Sampling:
    """Name the method by which these labels were obtained."""
    if any(each.grade is not None for each in groups):
        return Sampling.JUDGE
    is_drawn = any(each.probability is not None for each in groups)
    return Sampling.DRAWS if is_drawn else Sampling.ANSWERS


def bounds(
    requests: Vector, expected: Vector, groups: Groups, level: float, *, trust_judge: bool = False
) -> Bounds:
    """Bound the share satisfied of ``requests``, at least one, at that confidence.

    ``expected`` is the sum of what was expected of each of them before its label; a wrong
    expectation only widens the bounds. With ``trust_judge`` the judge's grades are taken as true,
    whatever the users' labels of the same requests.
    """
    sampling, made = sampling_of(groups), -log(1.0 - level)
    if sampling is Sampling.JUDGE:
        low, rate, high = _judged(requests, expected, groups, made, trust_judge)
    else:
        low, rate, high = _by_words(requests, expected, groups, made, sampling)
    labelled, satisfied, _ = _words(groups, requests)
    least, most = satisfied / requests, (satisfied + requests - labelled) / requests
    return Bounds(
        rate=np.clip(rate / requests, least, most),
        low=np.clip(low / requests, least, most),
        high=np.clip(high / requests, least, most),
        sampling=sampling,
    )


def _words(groups: Groups, requests: Vector) -> tuple[Vector, Vector, Vector]:
    """Count the requests with a word of a user or a check, the satisfied ones of them, and those
    expected to be."""
    labelled, satisfied, expected = np.zeros((3, *requests.shape))
    for each in groups:
        if each.word is not None:
            labelled += each.count
            satisfied += each.count * each.word
            expected += each.count * each.expected
    return labelled, satisfied, expected


def _by_words(
    requests: Vector, expected: Vector, groups: Groups, made: float, sampling: Sampling
) -> tuple[Vector, Vector, Vector]:
    """Bound the sum of the words if every request had one: by draws, plus those not drawn; or
    by those who answered, as if drawn, with the share of all by weight."""
    words = [each for each in groups if each.word is not None]
    if sampling is Sampling.DRAWS:
        undrawn = [each for each in words if each.probability is None]
        sample = [each for each in words if each.probability is not None]
        likely = [np.full_like(requests, each.probability or 0.0) for each in sample]
    else:
        undrawn, sample = [], words
        weighed = sum((each.count * each.weight for each in words), np.zeros_like(requests))
        likely = [_probability(weighed / each.weight, requests) for each in sample]
    _, satisfied, foreseen = _words(undrawn, requests)
    sums = _sums(requests, sample, [each.word or 0.0 for each in sample], likely)
    start = satisfied + expected - foreseen
    low, high = sums.bounds(made)
    return start + low, start + sums.estimate, start + high


def _judged(
    requests: Vector, expected: Vector, groups: Groups, made: float, trust_judge: bool
) -> tuple[Vector, Vector, Vector]:
    """Bound the users' words together with the judge's grades of the silent requests."""
    labelled, satisfied, foreseen = _words(groups, requests)
    drawn = [each for each in groups if each.grade is not None]
    graded = sum((each.count for each in drawn), np.zeros_like(requests))
    sample = [each for each in drawn if each.word is None]
    likely = [
        _probability(graded, requests)
        if each.probability is None
        else np.full_like(requests, each.probability)
        for each in sample
    ]
    sums = _sums(requests, sample, [each.grade or 0.0 for each in sample], likely)
    silent = Silent(requests - labelled, expected - foreseen, sums)
    at_its_word = silent.shares(made)
    shares = at_its_word if trust_judge else silent.corrected(Pairs.of(drawn, requests), made)
    shares = tuple(
        np.clip(np.where(labelled > 0.0, share, plain), 0.0, 1.0)
        for share, plain in zip(shares, at_its_word, strict=True)
    )
    low, rate, high = (satisfied + silent.requests * share for share in shares)
    return low, rate, high


@dataclass(frozen=True, eq=False)
class Pairs:
    """Requests labelled by both a user and the judge: ``trials``, and those that the judge called
    satisfactory; of unsatisfied users first, of satisfied ones second."""

    trials: Vector
    yes: Vector

    @classmethod
    def of(cls, drawn: Groups, requests: Vector) -> "Pairs":
        """Count the pairs."""
        trials, yes = np.zeros((2, *requests.shape)), np.zeros((2, *requests.shape))
        for each in drawn:
            if each.word is not None and each.grade is not None:
                truth = int(each.word >= SATISFIED)
                trials[truth] += each.count
                yes[truth] += each.count * (each.grade >= SATISFIED)
        return cls(trials, yes)


@dataclass(frozen=True, eq=False)
class Silent:
    """The requests without a user's word, how many of them were ``expected`` to be satisfied, and
    the judge's grades around that."""

    requests: Vector
    expected: Vector
    sums: SampledSums

    def shares(self, made: Vector | float, noise: Vector | float = 0.0) -> tuple[Vector, ...]:
        """Return the share that the judge would call satisfactory if it graded all: the lowest, the
        likeliest, the highest."""
        low, high = self.sums.bounds(made, noise)
        whole = np.maximum(self.requests, 1.0)
        return tuple((self.expected + each) / whole for each in (low, self.sums.estimate, high))

    def corrected(self, pairs: Pairs, made: float) -> tuple[Vector, ...]:
        """Return the share of satisfied ones among them: the lowest, the likeliest, the highest.

        Three quantities are unknown: how the judge would grade all, how often it is right on
        satisfied users, how often it is wrong on others. Bets on them are on different requests, so
        their product is a process as each is, and all three hold together as long as it is below
        its limit. The worst case is taken over how the limit is split among them.
        """
        (alarm_yes, hit_yes), (alarms, hits) = pairs.yes, pairs.trials
        least = (
            self.sums.least_made(self.requests),
            sequence.least_made(alarm_yes, alarms),
            sequence.least_made(hit_yes, hits),
        )
        spare = made - sum(least)
        steps = [spare * part / PARTS for part in range(PARTS + 1)]
        judged = [self.shares(least[0] + step, self.requests) for step in steps]
        alarm = [rate_bounds(alarm_yes, alarms, least[1] + step) for step in steps]
        hit = [rate_bounds(hit_yes, hits, least[2] + step) for step in steps]
        low, high = np.ones_like(self.requests), np.zeros_like(self.requests)
        for first in range(PARTS + 1):
            for second in range(PARTS + 1 - first):
                third = PARTS - first - second
                tells = hit[third][0] > alarm[second][1]
                lowest = _share(judged[first][0], hit[third][1], alarm[second][1])
                highest = _share(judged[first][2], hit[third][0], alarm[second][0])
                low = np.minimum(low, np.where(tells, lowest, 0.0))
                high = np.maximum(high, np.where(tells, highest, 1.0))
        middle = _share(
            judged[0][1], (hit_yes + 0.5) / (hits + 1.0), (alarm_yes + 0.5) / (alarms + 1.0)
        )
        return low, middle, high


def _share(judged: Vector, hit: Vector, alarm: Vector) -> Vector:
    """Convert the share that a judge calls satisfactory into the share that is."""
    return np.asarray((judged - alarm) / np.maximum(hit - alarm, 1e-9))


def _probability(labelled: Vector, requests: Vector) -> Vector:
    """Estimate the probability of a label by the share of requests that got one."""
    return np.clip(labelled / requests, 1.0 / np.maximum(requests, 1.0), 1.0)


def _sums(
    requests: Vector, sample: Groups, labels: Sequence[float], likely: Sequence[Vector]
) -> SampledSums:
    """Sum by how much each group's label differs from what was expected, for draws of these
    probabilities, if there are any."""
    sums = SampledSums(np.min([*likely], axis=0) if likely else np.ones_like(requests))
    for each, label, probability in zip(sample, labels, likely, strict=True):
        sums.add(np.full_like(requests, label - each.expected), probability, each.count)
    return sums
