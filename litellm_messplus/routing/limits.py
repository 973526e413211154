"""Limits in addition to alpha: on the share of slow requests, and on the cost of a day.

Each limit is one more virtual queue with a price, as in drift plus penalty with several
constraints. A request goes to the candidate with the least

    cost + late_price * late - price / strain * satisfaction,

where ``late`` is the probability that it takes longer than the limit, ``late_price`` what one late
request less may cost, and ``strain`` the factor by which the budget raises the weight of a unit of
cost. Without limits ``late_price`` is 0 and ``strain`` is 1, which is the rule without this module.

If not all limits can be kept, the budget comes first, then alpha, then latency:

- The price of satisfaction is computed from costs that include the charge for lateness. So the
  queue of alpha raises it as far as necessary, whatever lateness costs: alpha is kept, at the
  lowest rate of late requests that allows it.
- The strain divides the price of satisfaction, up to ten thousand times. So the cheapest candidate
  serves once the budget is used up. Before the strain begins, nothing more is paid to be in time;
  once the budget is nearly used up, nothing is tried either.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

# Latency: the queue of late requests, and the price of one.
#
# The queue counts the late requests beyond the allowed share, signed and bounded on both sides:
# the credit of a fast morning pays for a hundred slow requests and no more, and a limit that could
# not be kept for a day is not repaid for a week. The price is in units of the cost difference
# between candidates, so it depends on no currency.

LATE_SHARE = 0.05
"""Share of the requests that may take longer than the limit, which is thus a p95."""
MOST_LATE, MOST_SAVED = 20.0, 5.0
"""Bounds on the late requests owed, and on those saved up."""
GAIN = 0.3
"""Growth of the price, in the exponent, per late request owed."""


def after(owed: float, *, is_late: bool) -> float:
    """Move the queue of late requests by one request."""
    return min(max(owed + float(is_late) - LATE_SHARE, -MOST_SAVED), MOST_LATE)


def late_price(owed: float, typical_costs: Sequence[float]) -> float:
    """Return what one late request less may cost; 0 if none is owed. It moves in steps of whole
    requests, because a plan over recent prompts is made for each step."""
    whole = round(min(max(owed, 0.0), MOST_LATE))
    return _unit(typical_costs) * math.expm1(GAIN * whole)


def _unit(costs: Sequence[float]) -> float:
    """Return the cost difference between the candidates; any positive amount if they are equal."""
    return (max(costs) - min(costs)) or max(costs) or 1.0


# Budget: what may be spent by now, and the strain on all costs.
#
# The budget of a day is released as the day goes by, an hour ahead: so it lasts until midnight,
# and what a quiet night leaves is available during the day. The strain begins when 2 % of the
# budget are left of what may be spent by now, and is highest at zero: so a day's budget is kept to
# within a request or two, whenever calling only the cheapest candidate keeps it.

DAY = 86_400.0
AHEAD_SECONDS = 3_600.0
"""Seconds by which the budget is released ahead, so that a day can begin."""
ROOM = 0.02
"""Share of the budget, below what may be spent by now, at which the strain begins."""
MOST_STRAIN = 1e4
STEEPNESS = math.log(MOST_STRAIN) / ROOM
SPARE = 0.04
"""Share of the budget, below what may be spent by now, from which on nothing is paid to be in time:
the rest is for alpha."""
BINDS = 2.0
"""Strain from which on the budget binds: it decides which candidate serves."""
TIGHT = 10.0
"""Strain from which on nothing is tried and no unseen call is made."""


def allowed_share(elapsed: float) -> float:
    """Return the share of a day's budget that may be spent after ``elapsed`` seconds of the day."""
    return min((elapsed + AHEAD_SECONDS) / DAY, 1.0)


def strain(spent: float, budget: float, elapsed: float) -> float:
    """Return the factor on a unit of cost, 1 without pressure, when ``spent`` of the day's budget
    is used."""
    over = spent / budget - allowed_share(elapsed) + ROOM
    return math.exp(min(max(STEEPNESS * over, 0.0), math.log(MOST_STRAIN)))


# The limits as a decision receives them.


class Lateness(NamedTuple):
    """The probabilities that a candidate takes longer than the limit: for this request, and for an
    average one."""

    now: float
    typical: float


class Limits(NamedTuple):
    """The state of a service level against its limits as a request is decided.

    A request is late after ``late_after`` seconds, ``late_owed`` late requests are owed, and
    ``late`` is the prediction for each candidate. Of the day's ``budget``, ``spent`` is used and
    ``allowed`` may be used by now. A limit that is not set is None; its price is 0, its strain 1.
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
        """The charge for a late request: its price, or 0 if alpha needs the budget."""
        return self.late_price if self._is_spare else 0.0

    @property
    def _is_spare(self) -> bool:
        return self.budget is None or self.spent <= self.allowed - SPARE * self.budget

    @property
    def charged(self) -> tuple[float | None, float] | None:
        """The limit and the charge for lateness, on which a plan over recent prompts depends; None
        without any."""
        return (self.late_after, self.charge) if self.charge > 0.0 else None

    @property
    def is_tight(self) -> bool:
        """Whether nothing may be spent on trying models out."""
        return self.strain >= TIGHT

    @property
    def binding(self) -> str | None:
        """The limit that decides in addition to alpha: the budget before latency."""
        if self.strain >= BINDS or self.late_price > self.charge:
            return "budget"
        return "latency" if self.late_price > 0.0 else None
