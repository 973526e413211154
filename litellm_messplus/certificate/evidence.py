"""What the labels prove of all requests, those included of which nobody said anything.

The share is of the requests that were served, each with the satisfaction that its user would state:
nothing is said of requests to come. So what users said themselves is no estimate. Of the silent
rest a sample tells, in one of three ways:

- `judge`: a judge grades requests that a draw picks, whether their users answer or not. It errs.
  How often, in both directions, is seen where a user spoke too, and its verdict on the silent ones
  is corrected by that, with the least favourable errors that these pairs allow (the point estimate
  is that of Rogan and Gladen, "Estimating prevalence from the results of a screening test",
  American Journal of Epidemiology 107, 1978). Where no user ever speaks it is taken at its word.
- `draws`: no judge, but labels that were asked for by draws of known probability.
- `answers`: neither. Those who answered then stand for those who did not, with the weights that the
  configured response bias gave them. That is an assumption, and no number of labels proves it.

All numbers are vectors, an element a promise: a benchmark asks for many at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

import numpy as np

from litellm_messplus.certificate import sequence
from litellm_messplus.certificate.sequence import SampledSums, Vector, rate_bounds

SATISFIED = 0.5
"""From which value on a word or a grade says satisfied, where the judge is held to the users."""
PARTS = 6
"""Into how many parts is split what may be believed of three unknowns; with 12 the interval is
wider by less than a hundredth."""


class Sampling(StrEnum):
    """The way in which it is known what the silent requests were worth."""

    JUDGE = "judge"
    DRAWS = "draws"
    ANSWERS = "answers"


@dataclass(frozen=True, eq=False)
class Heard:
    """Requests of which the same was said, and their ``count``.

    ``word`` is what a user, or a check, said, and ``grade`` what the judge did; None where it did
    not. ``weight`` is the word's. ``probability`` is with which the label was drawn: the grade's
    where there is one; None where it was not, or nobody wrote it down.
    """

    count: Vector
    word: float | None
    grade: float | None
    weight: float = 1.0
    probability: float | None = None


@dataclass(frozen=True, eq=False)
class Bounds:
    """The share satisfied of all requests, and between which values it lies at every look."""

    rate: Vector
    low: Vector
    high: Vector
    sampling: Sampling


def sampling_of(heard: Sequence[Heard]) -> Sampling:
    """Name the way that these labels came about."""
    if any(each.grade is not None for each in heard):
        return Sampling.JUDGE
    is_drawn = any(each.probability is not None for each in heard)
    return Sampling.DRAWS if is_drawn else Sampling.ANSWERS


def bounds(
    requests: Vector,
    heard: Sequence[Heard],
    centre: float,
    level: float,
    *,
    trust_judge: bool = False,
) -> Bounds:
    """Bound the share satisfied of so many ``requests``, at least one, at that confidence.

    ``centre`` is the share that is expected before any label: the one promised. It makes nothing
    wrong, only wider where it is far off. With ``trust_judge`` a judge is taken at its word,
    whatever users said of the same requests.
    """
    sampling, made = sampling_of(heard), -log(1.0 - level)
    if sampling is Sampling.JUDGE:
        low, rate, high = _judged(requests, heard, centre, made, trust_judge)
    else:
        low, rate, high = _told(requests, heard, centre, made, sampling)
    told, satisfied = _words(heard, requests)
    least, most = satisfied / requests, (satisfied + requests - told) / requests
    return Bounds(
        rate=np.clip(rate / requests, least, most),
        low=np.clip(low / requests, least, most),
        high=np.clip(high / requests, least, most),
        sampling=sampling,
    )


def _words(heard: Sequence[Heard], requests: Vector) -> tuple[Vector, Vector]:
    """Count the requests of which users, or checks, spoke, and those they were satisfied with."""
    told, satisfied = np.zeros_like(requests), np.zeros_like(requests)
    for each in heard:
        if each.word is not None:
            told += each.count
            satisfied += each.count * each.word
    return told, satisfied


def _told(
    requests: Vector, heard: Sequence[Heard], centre: float, made: float, sampling: Sampling
) -> tuple[Vector, Vector, Vector]:
    """Bound the sum of the words, had all spoken: by draws, beside what was said unasked; or by
    those who answered, as if a draw had picked them, with the share of all by weight."""
    words = [each for each in heard if each.word is not None]
    if sampling is Sampling.DRAWS:
        unasked = [each for each in words if each.probability is None]
        sample = [each for each in words if each.probability is not None]
        likely = [np.full_like(requests, each.probability or 0.0) for each in sample]
    else:
        unasked, sample = [], words
        weighed = sum((each.count * each.weight for each in words), np.zeros_like(requests))
        likely = [_probability(weighed / each.weight, requests) for each in sample]
    told, satisfied = _words(unasked, requests)
    sums = _sums(likely, requests)
    for each, probability in zip(sample, likely, strict=True):
        sums.add(np.full_like(requests, (each.word or 0.0) - centre), probability, each.count)
    start = satisfied + centre * (requests - told)
    low, high = sums.bounds(made)
    return start + low, start + sums.estimate, start + high


def _judged(
    requests: Vector, heard: Sequence[Heard], centre: float, made: float, trust_judge: bool
) -> tuple[Vector, Vector, Vector]:
    """Bound what users said together with what the judge says of the silent ones."""
    told, satisfied = _words(heard, requests)
    drawn = [each for each in heard if each.grade is not None]
    graded = sum((each.count for each in drawn), np.zeros_like(requests))
    sample = [each for each in drawn if each.word is None]
    likely = [
        _probability(graded, requests)
        if each.probability is None
        else np.full_like(requests, each.probability)
        for each in sample
    ]
    sums = _sums(likely, requests)
    for each, probability in zip(sample, likely, strict=True):
        sums.add(np.full_like(requests, (each.grade or 0.0) - centre), probability, each.count)
    silent = Silent(requests - told, centre, sums)
    at_its_word = silent.shares(made)
    shares = at_its_word if trust_judge else silent.corrected(Pairs.of(drawn, requests), made)
    shares = tuple(
        np.clip(np.where(told > 0.0, share, plain), 0.0, 1.0)
        for share, plain in zip(shares, at_its_word, strict=True)
    )
    low, rate, high = (satisfied + silent.requests * share for share in shares)
    return low, rate, high


@dataclass(frozen=True, eq=False)
class Pairs:
    """Requests that a user and the judge spoke of: ``trials`` and those that the judge called
    satisfactory, of unsatisfied users first, of satisfied ones second."""

    trials: Vector
    yes: Vector

    @classmethod
    def of(cls, drawn: Sequence[Heard], requests: Vector) -> "Pairs":
        """Count them."""
        trials, yes = np.zeros((2, *requests.shape)), np.zeros((2, *requests.shape))
        for each in drawn:
            if each.word is not None and each.grade is not None:
                truth = int(each.word >= SATISFIED)
                trials[truth] += each.count
                yes[truth] += each.count * (each.grade >= SATISFIED)
        return cls(trials, yes)


@dataclass(frozen=True, eq=False)
class Silent:
    """The requests of which no user spoke, and what the judge says of them, around ``centre``."""

    requests: Vector
    centre: float
    sums: SampledSums

    def shares(self, made: Vector | float, noise: Vector | float = 0.0) -> tuple[Vector, ...]:
        """Give the share that the judge would call satisfactory, had it graded all: the lowest, the
        likeliest, the highest."""
        low, high = self.sums.bounds(made, noise)
        whole = np.maximum(self.requests, 1.0)
        return tuple(self.centre + each / whole for each in (low, self.sums.estimate, high))

    def corrected(self, pairs: Pairs, made: float) -> tuple[Vector, ...]:
        """Give the share of satisfied ones among them, the lowest, the likeliest, the highest.

        Three things are not known: what the judge would say of all, how often it is right on
        satisfied users, how often it is wrong on others. Bets on them are on different requests, so
        their product is a process as each is, and all three are believed together as long as it
        is below its limit. Over how that is split among them the worst case is taken.
        """
        (alarm_yes, hit_yes), (alarms, hits) = pairs.yes, pairs.trials
        least = (
            self.sums.least_made(self.requests),
            sequence.least_made(alarm_yes, alarms),
            sequence.least_made(hit_yes, hits),
        )
        spare = made - sum(least)
        steps = [spare * part / PARTS for part in range(PARTS + 1)]
        said = [self.shares(least[0] + step, self.requests) for step in steps]
        alarm = [rate_bounds(alarm_yes, alarms, least[1] + step) for step in steps]
        hit = [rate_bounds(hit_yes, hits, least[2] + step) for step in steps]
        low, high = np.ones_like(self.requests), np.zeros_like(self.requests)
        for first in range(PARTS + 1):
            for second in range(PARTS + 1 - first):
                third = PARTS - first - second
                tells = hit[third][0] > alarm[second][1]
                lowest = _share(said[first][0], hit[third][1], alarm[second][1])
                highest = _share(said[first][2], hit[third][0], alarm[second][0])
                low = np.minimum(low, np.where(tells, lowest, 0.0))
                high = np.maximum(high, np.where(tells, highest, 1.0))
        middle = _share(
            said[0][1], (hit_yes + 0.5) / (hits + 1.0), (alarm_yes + 0.5) / (alarms + 1.0)
        )
        return low, middle, high


def _share(said: Vector, hit: Vector, alarm: Vector) -> Vector:
    """Turn the share that a judge calls satisfactory into that of those that are."""
    return np.asarray((said - alarm) / np.maximum(hit - alarm, 1e-9))


def _probability(labelled: Vector, requests: Vector) -> Vector:
    """Take the share that got a label for the probability of one."""
    return np.clip(labelled / requests, 1.0 / np.maximum(requests, 1.0), 1.0)


def _sums(likely: Sequence[Vector], requests: Vector) -> SampledSums:
    """Begin the sums for draws of these probabilities, if there are any."""
    return SampledSums(np.min([*likely], axis=0) if likely else np.ones_like(requests))
