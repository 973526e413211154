"""Which requests' labels are bought: those needed, within the budget, and within their key's share
of the money.

Pure: the need, the spending and the seed of the draw are arguments. The probability that a
request's labels are bought is known, and logged with them.
"""

import math
from dataclasses import dataclass
from datetime import date

import numpy as np

from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.surface import Surface
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.draws import uniform

# The need for labels.

START = 100.0
"""Labels that halve the rate: all are bought for the first requests, then ever fewer."""
LEAST = 0.02
"""The rate when all is settled, so that a change is still noticed."""
DOUBT = 0.25
"""The rate while it is in doubt whether a candidate can hold alpha."""
SUSPECTED = 0.5
"""The rate when a model has nearly been found worse than before."""
UNFAMILIAR = 0.5
"""The rate for prompts unlike those that were judged."""
UNSURE = 0.03
"""Least standard deviation of a satisfaction rate at which doubt about it counts in full."""
ENOUGH_PROMPTS = 50
"""Least judged prompts before any prompt is unfamiliar: with fewer, nearly all would be."""
FARTHER = 1.0
"""Distance of a prompt's number from the range of the judged ones that makes it unfamiliar: numbers
of the surface are log2 of counts, or 0 and 1."""


@dataclass(frozen=True, slots=True)
class Need:
    """The need for labels: ``labels`` is the weight of those known; ``doubt``, from 0 to 1, that
    the candidates hold alpha, and ``suspicion``, that one has become worse; whether one has just
    changed, and whether the prompt is unlike those judged."""

    labels: float
    doubt: float = 0.0
    suspicion: float = 0.0
    has_changed: bool = False
    is_unfamiliar: bool = False


def need(known: Predictor, largest: str, alpha: float, surface: Surface | None) -> Need:
    """Estimate the need of a request to a zoo, given the predictor. Only candidates other than the
    ``largest`` are in doubt."""
    others = [place for name, place in known.index.items() if name != largest]
    labels = sum(known.means[place].weight for place in others)
    doubts = (_doubt(known.rate[place], known.deviation[place], alpha) for place in others)
    return Need(
        labels,
        max(doubts, default=0.0),
        max(2.0 * known.suspicion - 1.0, 0.0),  # half the evidence is common by chance
        any(test.due > 0 for test in known.changes),
        is_unfamiliar(known, surface),
    )


def rate(need: Need) -> float:
    """Compute the probability with which labels are bought without a limit on money."""
    if need.has_changed:
        return 1.0
    return max(
        START / (START + need.labels),
        DOUBT * need.doubt,
        SUSPECTED * need.suspicion,
        UNFAMILIAR if need.is_unfamiliar else LEAST,
    )


def is_unfamiliar(known: Predictor, surface: Surface | None) -> bool:
    """Tell whether a number of the prompt lies far outside the range of recent judged prompts."""
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
    """Return 1 if both outcomes are equally likely and little is known, 0 if one is certain."""
    chance = 0.5 * math.erfc((alpha - rate) / (math.sqrt(2.0) * max(deviation, 1e-6)))
    return 4.0 * chance * (1.0 - chance) * min(deviation / UNSURE, 1.0)


# The money that labels may cost.

START_ALLOWANCE = 0.02
"""Allowance for labels before anything is saved, as a share of the cost of a day's requests at the
largest candidate."""
PACE = 20.0
"""Requests over which the money left is spread, so that the next one does not take it all."""
RAREST = 0.01
"""Least probability of a draw: below it none is made, as a label would stand for more than a
hundred requests."""
HOURS = 24.0
SHORTEST_HOURS = 1.0
"""Least hours from which a day is projected: less time counts as an hour."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The money of one zoo, in its unit: what routing ``saved`` net of labels, the cost of labels
    so far and ``today``, and the cost of a day's requests at the largest candidate. ``one`` is the
    cost of the labels of one request."""

    saved: float = 0.0
    spent: float = 0.0
    today: float = 0.0
    day_at_largest: float = 0.0
    one: float = 0.0


def projected_day(so_far: float, hours: float) -> float:
    """Estimate the cost of a day from that of its first ``hours``."""
    return so_far * HOURS / min(max(hours, SHORTEST_HOURS), HOURS)


def room(
    spending: Spending, share_of_saved: float, start_allowance: float, most_today: float | None
) -> float:
    """Compute the money left for labels now, at least 0."""
    allowed = start_allowance * spending.day_at_largest + share_of_saved * max(spending.saved, 0.0)
    left = allowed - spending.spent
    if most_today is not None:
        left = min(left, most_today - spending.today)
    return max(left, 0.0)


def affordable(wanted: float, room: float, one: float) -> float:
    """Lower the wanted probability to an affordable one; to 0 if that is below `RAREST`, or if not
    even one request's labels can be paid."""
    if one > 0.0:
        wanted = min(wanted, room / (PACE * one)) if room >= one else 0.0
    elif room <= 0.0:
        wanted = 0.0
    return min(wanted, 1.0) if wanted >= RAREST else 0.0


def is_drawn(seed: int, request_id: str, probability: float) -> bool:
    """Tell whether a request is in the sample of that probability: the same on each worker, and
    unpredictable to clients. It is in every larger sample too."""
    return uniform(seed, "sample", request_id) < probability


# The share of a day's money for labels that the requests of one key may cost.
#
# One client must not use up the labels of all others, by many requests or by long ones. Each key
# may use a part of a worker's money for the day: twice its share of the requests, up to a half, so
# that a key with longer prompts than the others is not limited. The other keys together keep theirs
# by the same rule, so a key that makes nearly all requests may use nearly all of the money. A key's
# first labels come before it has a share. Keys that a worker has forgotten start anew.

KEY_ROOM = 2.0
"""Factor from a key's share of the requests to its share of the money."""
KEY_HALF = 0.5
KEY_START = 0.05
"""Share of the money that any key may use, however few its requests are."""
REMEMBERED = 10_000
"""Most keys that are remembered, those of the latest requests."""


@dataclass(slots=True)
class _Key:
    requests: int = 0
    spent: float = 0.0


class KeyShares:
    """The requests and spending of a zoo's keys in a day, as one worker sees them."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._begin(date.min)

    def count(self, key: str | None, today: date) -> None:
        """Count a request; the first of a new day resets all keys."""
        if today != self._day:
            self._begin(today)
        self._of(key).requests += 1
        self._requests += 1

    def allows(self, key: str | None, cost: float, left: float, day: float) -> bool:
        """Tell whether labels of a key may cost so much more. A worker's money for a whole ``day``
        is what it has spent and what is ``left``, which may still include the cost of labels bought
        and not yet paid."""
        own = self._of(key)
        share = own.requests / max(self._requests, 1)
        others = min(KEY_ROOM * (1.0 - share), KEY_HALF)
        part = max(KEY_START, min(KEY_ROOM * share, 1.0 - others))
        return own.spent + cost <= part * min(self._spent + left, day)

    def spend(self, key: str | None, cost: float) -> None:
        """Add the cost of a key's labels; a negative one corrects an overestimate."""
        self._of(key).spent += cost
        self._spent += cost

    def _begin(self, day: date) -> None:
        self._day = day
        self._keys: Bounded[str | None, _Key] = Bounded(self._remembered)
        self._requests, self._spent = 0, 0.0

    def _of(self, key: str | None) -> _Key:
        return self._keys.newest(key, _Key)
