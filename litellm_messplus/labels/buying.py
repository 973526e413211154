"""Which requests' labels are bought: where they are needed, while they can be paid, and while their
key has not had its part of the money.

Pure: what is needed and what was spent come in as numbers, and so does the draw. The probability
that a request's labels are bought is known, and goes into the log with them.
"""

import math
from dataclasses import dataclass
from datetime import date

import numpy as np

from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.prediction.rates import ALARM
from litellm_messplus.prediction.surface import Surface
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.draws import uniform

# How much labels are needed.

START = 100.0
"""Labels that halve the rate: of the first requests all are bought, of the next ever fewer."""
LEAST = 0.02
"""The rate when all is settled: what changes is found out by something."""
DOUBT = 0.25
"""The rate at which it is asked whether a candidate can hold alpha."""
DRIFT = 0.5
"""The rate when a model is about to be found worse than it was."""
UNFAMILIAR = 0.5
"""The rate of prompts unlike those that were judged."""
UNSURE = 0.03
"""Standard deviation of a rate from which on doubt about it counts in full."""
ENOUGH_PROMPTS = 50
"""Judged prompts below which none is unfamiliar: nearly all would be."""
FARTHER = 1.0
"""By how much a number of the prompt must lie outside those of the judged ones: numbers of the
surface are doublings, or 0 and 1."""


@dataclass(frozen=True, slots=True)
class Need:
    """The need for labels: ``labels`` that are remembered; ``doubt``, from 0 to 1, whether the
    candidates hold alpha, and ``drift``, whether one has become worse; and whether the prompt is
    unlike those judged."""

    labels: float
    doubt: float = 0.0
    drift: float = 0.0
    is_unfamiliar: bool = False


def need(known: Predictor, largest: str, alpha: float, surface: Surface | None) -> Need:
    """Estimate the need of a request to a zoo of which so much is known. What is in question are
    the candidates beside the ``largest``."""
    others = [place for name, place in known.index.items() if name != largest]
    labels = sum(known.means[place].weight for place in others)
    doubts = (_doubt(known.rate[place], known.deviation[place], alpha) for place in others)
    drift = max(mean.change.evidence for mean in known.means) / ALARM
    return Need(labels, max(doubts, default=0.0), min(drift, 1.0), is_unfamiliar(known, surface))


def rate(need: Need) -> float:
    """Compute the probability with which labels are bought where money is no question."""
    return max(
        START / (START + need.labels),
        DOUBT * need.doubt,
        DRIFT * need.drift,
        UNFAMILIAR if need.is_unfamiliar else LEAST,
    )


def is_unfamiliar(known: Predictor, surface: Surface | None) -> bool:
    """Tell whether a number of the prompt lies far outside what the recent judged prompts have."""
    recent = known.recent
    kept = len(recent)
    if surface is None or kept < ENOUGH_PROMPTS:
        return False
    seen = recent.numbers[:kept][recent.is_seen[:kept]]
    if len(seen) < ENOUGH_PROMPTS:
        return False
    outside = np.maximum(seen.min(axis=0) - surface, surface - seen.max(axis=0))
    return bool(outside.max() >= FARTHER)


def _doubt(rate: float, deviation: float, alpha: float) -> float:
    """Return 1 where it may go either way and little is known, 0 where it is known."""
    chance = 0.5 * math.erfc((alpha - rate) / (math.sqrt(2.0) * max(deviation, 1e-6)))
    return 4.0 * chance * (1.0 - chance) * min(deviation / UNSURE, 1.0)


# What labels may cost.

START_ALLOWANCE = 0.02
"""What labels may cost before anything is saved: a share of what a day of requests would cost at
the largest candidate."""
PACE = 20.0
"""Requests over which what may be spent is spread: not all of it goes to the next one."""
RAREST = 0.01
"""The lowest probability of a draw: below it none is made, for a label of it would stand for more
than a hundred requests."""
HOURS = 24.0
SHORTEST_HOURS = 1.0
"""From which a day is projected: what came so far is taken for no less than an hour's."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The money of one zoo, in its unit: what routing ``saved``, labels paid, what they cost so
    far, and ``today``; and what a day of requests would cost at the largest
    candidate. ``one`` is what the labels of one request cost."""

    saved: float = 0.0
    spent: float = 0.0
    today: float = 0.0
    day_at_largest: float = 0.0
    one: float = 0.0


def projected_day(so_far: float, hours: float) -> float:
    """Estimate what a day costs of which ``hours`` have cost so much."""
    return so_far * HOURS / min(max(hours, SHORTEST_HOURS), HOURS)


def room(
    spending: Spending, share_of_saved: float, start_allowance: float, most_today: float | None
) -> float:
    """Compute what labels may still cost now; never below 0."""
    allowed = start_allowance * spending.day_at_largest + share_of_saved * max(spending.saved, 0.0)
    left = allowed - spending.spent
    if most_today is not None:
        left = min(left, most_today - spending.today)
    return max(left, 0.0)


def affordable(wanted: float, room: float, one: float) -> float:
    """Lower the probability that is wanted to what can be paid; to 0 where that is next to nothing,
    or where not even one can be paid."""
    if one > 0.0:
        wanted = min(wanted, room / (PACE * one)) if room >= one else 0.0
    elif room <= 0.0:
        wanted = 0.0
    return min(wanted, 1.0) if wanted >= RAREST else 0.0


def is_drawn(seed: int, request_id: str, probability: float) -> bool:
    """Tell whether a request is in the sample of that probability: whichever worker asks, and as
    nobody can foresee. It is in every larger sample too."""
    return uniform(seed, "sample", request_id) < probability


# How much of a day's money for labels the requests of one key may cost.
#
# One client must not take the labels of all others, by many requests or by long ones. Each key has
# a part of what a worker may spend in a day: twice its share of the requests, up to a half, so that
# one with longer prompts than the others is not held. The other keys together keep theirs by the
# same rule, so one that makes nearly all of the requests may have nearly all of the money. A key's
# first labels come before it has a share. What a worker does not remember begins anew.

KEY_ROOM = 2.0
"""Times its share of the requests: the share of the money that a key may have."""
KEY_HALF = 0.5
KEY_START = 0.05
"""The share of the money that any key may have, however few its requests are."""
REMEMBERED = 10_000
"""Keys, those that asked last."""


@dataclass(slots=True)
class _Key:
    requests: int = 0
    spent: float = 0.0


class KeyShares:
    """The keys of one zoo, as one worker sees them in a day."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._begin(date.min)

    def __len__(self) -> int:
        return len(self._keys)

    def asked(self, key: str | None, today: date) -> None:
        """Count a request; that of a new day begins all keys anew."""
        if today != self._day:
            self._begin(today)
        self._of(key).requests += 1
        self._requests += 1

    def allows(self, key: str | None, cost: float, left: float, day: float) -> bool:
        """Tell whether labels of a key may cost so much more. Of the money of a whole ``day`` a
        worker has what it has spent and what is ``left`` for it, from which what is bought and not
        yet paid need not be taken off."""
        own = self._of(key)
        share = own.requests / max(self._requests, 1)
        others = min(KEY_ROOM * (1.0 - share), KEY_HALF)
        part = max(KEY_START, min(KEY_ROOM * share, 1.0 - others))
        return own.spent + cost <= part * min(self._spent + left, day)

    def spend(self, key: str | None, cost: float) -> None:
        """Count what labels of a key cost; below 0 what they did not cost after all."""
        self._of(key).spent += cost
        self._spent += cost

    def _begin(self, day: date) -> None:
        self._day = day
        self._keys: Bounded[str | None, _Key] = Bounded(self._remembered)
        self._requests, self._spent = 0, 0.0

    def _of(self, key: str | None) -> _Key:
        return self._keys.newest(key, _Key)
