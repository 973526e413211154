"""Limits beside alpha: on how many requests may take long, and on what a day may cost.

Each limit is one more virtual queue with a price, as drift plus penalty has it for several
constraints. A request goes to the candidate with the least

    cost + late_price * late - price / strain * satisfaction,

where ``late`` is the probability that it takes longer than the limit, ``late_price`` what one late
request less may cost, and ``strain`` how many times as much a unit of cost counts as without a
budget. Without limits ``late_price`` is 0 and ``strain`` 1, and it is what it always was.

Where they cannot all be kept, the budget comes first, then alpha, then latency:

- The price of satisfaction is worked out over costs with the charge for lateness in them. So the
  queue of alpha raises it as far as it must, whatever lateness costs: alpha is kept, in the way
  that is late least often.
- The strain divides the price of satisfaction, up to ten thousand times. So the cheapest candidate
  serves where the budget is used up. Before it begins, nothing is paid to be in time any more;
  where the budget is nearly used up, nothing is tried either.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

# Latency: the queue of late requests, and the price of one.
#
# The queue counts the late requests beyond the share that is allowed, signed and bounded on both
# sides: credit of a fast morning pays for a hundred slow requests and no more, and a limit that
# nobody could keep for a day is not repaid for a week. The price is in units of what the
# candidates differ by in cost, so it knows no currency.

LATE_SHARE = 0.05
"""Share of the requests that may take longer than the limit: its p95."""
MOST_LATE, MOST_SAVED = 20.0, 5.0
"""Late requests that may be owed, and saved up."""
GAIN = 0.3
"""Growth of the price for each late request that is owed, in the exponent."""


def after(owed: float, *, is_late: bool) -> float:
    """Move the queue of late requests by one request."""
    return min(max(owed + float(is_late) - LATE_SHARE, -MOST_SAVED), MOST_LATE)


def late_price(owed: float, typical_costs: Sequence[float]) -> float:
    """Return what one late request less may cost; nothing where none is owed. It moves in steps of
    whole requests, for a plan over recent prompts is made for each step."""
    whole = round(min(max(owed, 0.0), MOST_LATE))
    return _unit(typical_costs) * math.expm1(GAIN * whole)


def _unit(costs: Sequence[float]) -> float:
    """Return what the candidates differ by in cost; where they do not, any amount will do."""
    return (max(costs) - min(costs)) or max(costs) or 1.0


# Budget: what may be spent by now, and the strain on everything that costs.
#
# The budget of a day is given out as the day goes by, an hour ahead: so it lasts until midnight,
# and what a quiet night has left is there for the day. The strain begins where 2 % of the budget
# are left of what may be spent by now, and is the highest where nothing is: so a day's budget is
# kept to a request or two, wherever calling the cheapest candidate alone keeps it.

DAY = 86_400.0
AHEAD_SECONDS = 3_600.0
"""Seconds by which the budget is given out ahead, so that a day has something to begin with."""
ROOM = 0.02
"""Share of the budget, below what may be spent by now, at which the strain begins."""
MOST_STRAIN = 1e4
STEEPNESS = math.log(MOST_STRAIN) / ROOM
SPARE = 0.04
"""Share of the budget, below what may be spent by now, from which on nothing is paid to be in time:
what is left is for alpha."""
BINDS = 2.0
"""The strain from which on the budget binds: it decides who serves."""
TIGHT = 10.0
"""The strain from which on nothing is tried, and nobody called unseen."""


def allowed_share(elapsed: float) -> float:
    """Return which share of a day's budget may be spent after so many seconds of the day."""
    return min((elapsed + AHEAD_SECONDS) / DAY, 1.0)


def strain(spent: float, budget: float, elapsed: float) -> float:
    """Return how many times as much a unit of cost counts as without a budget, where so much is
    ``spent`` today."""
    over = spent / budget - allowed_share(elapsed) + ROOM
    return math.exp(min(max(STEEPNESS * over, 0.0), math.log(MOST_STRAIN)))


# What a decision is told of all limits together.


class Lateness(NamedTuple):
    """The probability that a candidate takes longer than the limit: for this request, and for an
    average one."""

    now: float
    typical: float


class Limits(NamedTuple):
    """The standing of a service level against its limits as a request is decided.

    ``late_after`` seconds a request is late, ``late_owed`` such requests are owed, and ``late`` is
    what is predicted of each candidate. Of the ``budget`` of the day so much is ``spent`` and so
    much ``allowed`` by now. A limit that is not set is None; its price is then 0, its strain 1.
    """

    late_after: float | None = None
    late_owed: float = 0.0
    late_price: float = 0.0
    late: Mapping[str, Lateness] = MappingProxyType({})
    budget: float | None = None
    spent: float = 0.0
    allowed: float = 0.0
    strain: float = 1.0

    @property
    def charge(self) -> float:
        """The charge for a late request: its price, and nothing where alpha needs the budget."""
        return self.late_price if self._is_spare else 0.0

    @property
    def _is_spare(self) -> bool:
        return self.budget is None or self.spent <= self.allowed - SPARE * self.budget

    @property
    def step(self) -> tuple[float | None, int] | None:
        """The part of the charge that a plan over recent prompts is made for; None without any."""
        return (self.late_after, round(self.late_owed)) if self.charge > 0.0 else None

    @property
    def is_tight(self) -> bool:
        """Whether nothing may be spent on trying models out."""
        return self.strain >= TIGHT

    @property
    def binding(self) -> str | None:
        """The limit that decides beside alpha: the budget before latency."""
        if self.strain >= BINDS or self.late_price > self.charge:
            return "budget"
        return "latency" if self.late_price > 0.0 else None
