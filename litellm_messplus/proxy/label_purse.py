"""What labels of a zoo may cost under `auto`: spent and saved by the log, and bought since."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from litellm_messplus.costs.price import CostUnit
from litellm_messplus.labels.purchasing import (
    Spending,
    affordable,
    own_share,
    projected_day,
    room,
)
from litellm_messplus.settings.labels import AutoSettings
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store.spending import LabelCosts

SETTLED_SECONDS = 2.0
"""After its last label, what a request cost is in the log."""
LONGEST_SECONDS = 300.0
"""How long what a request may cost is kept aside, where no label of it ever comes."""
MOST_RESERVED = 4096
"""Requests for which something is kept aside; of more the oldest is taken for paid."""
MARGIN = 2.0
"""Times what labels are expected to cost that must be left: an answer may be longer than usual."""


@dataclass(slots=True)
class _Reserved:
    cost: float
    since: float
    settled_at: float | None = None


class Purse:
    """The money that the labels of one zoo may cost, under `auto`, by what the log says that was
    saved and spent, and by what this worker has bought since. It buys nothing before it has looked
    at the log."""

    def __init__(self, zoo: ZooSettings, auto: AutoSettings) -> None:
        self._zoo = zoo
        self._auto = auto
        self._known: LabelCosts | None = None
        self._hours = 0.0
        self._asked = 0.0
        self._reserved: OrderedDict[str, _Reserved] = OrderedDict()
        self._aside = 0.0
        self._since_look = 0.0
        self._workers = 1

    def learn(self, known: LabelCosts, hours: float, looked_at: float, workers: int = 1) -> None:
        """Learn what the log held at a moment: today is so many hours old, for the zoo. Until the
        next look so many workers share what is left."""
        self._known, self._hours, self._asked = known, hours, 0.0
        self._workers, self._since_look = workers, 0.0
        for request_id, each in list(self._reserved.items()):
            done = each.settled_at
            is_logged = done is not None and done < looked_at - SETTLED_SECONDS
            if is_logged or each.since < looked_at - LONGEST_SECONDS:
                del self._reserved[request_id]
        self._aside = sum(each.cost for each in self._reserved.values())

    def probability(
        self, wanted: float, largest: float, others: float = 0.0
    ) -> tuple[float, float]:
        """Compute the probability with which labels of a request are bought, and the most that they
        may cost. ``largest`` is what its call to the largest candidate is expected to cost, and
        ``others`` what other candidates may, unseen."""
        known = self._known
        if known is None:
            return 0.0, 0.0
        self._asked += largest
        one = self._one(known, largest)
        most = MARGIN * (one + others)
        left = self._left(known)
        return affordable(wanted, left, one) if left >= most else 0.0, most

    def reserve(self, request_id: str, cost: float) -> None:
        """Reserve the cost of a request's labels, which are bought."""
        self._reserved[request_id] = _Reserved(cost, time.monotonic())
        self._aside += cost
        self._since_look += cost
        if len(self._reserved) > MOST_RESERVED:
            self._aside -= self._reserved.popitem(last=False)[1].cost

    def settled(self, request_id: str) -> None:
        """Note that a label of it has come, and soon the log has all that it cost."""
        reserved = self._reserved.get(request_id)
        if reserved is not None:
            reserved.settled_at = time.monotonic()

    @property
    def reserved(self) -> float:
        """The cost kept aside for requests whose labels are on their way."""
        return self._aside

    def _left(self, known: LabelCosts) -> float:
        """Compute what this worker may spend until the next look, for it does not know what the
        others buy meanwhile."""
        left = room(
            self._spending(known),
            self._auto.share_of_saved,
            self._auto.start_allowance,
            self._most_today(),
        )
        return own_share(left + self._since_look, self._since_look, self._workers)

    def _spending(self, known: LabelCosts) -> Spending:
        aside, so_far = self.reserved, known.largest_today + self._asked
        return Spending(
            saved=known.saved,
            spent=known.unseen + self._of_dollars(known.judging) + aside,
            today=known.unseen_today + self._of_dollars(known.judging_today) + aside,
            day_at_largest=max(known.largest_before, projected_day(so_far, self._hours)),
        )

    def _one(self, known: LabelCosts, largest: float) -> float:
        """Estimate the labels of one request: an answer of the largest, and comparing it in both
        orders; or grading alone, which is taken for as much as an answer of the largest until it is
        known."""
        grading = largest if known.grading is None else self._of_dollars(known.grading)
        return largest + 2.0 * grading if self._auto.by == "parity" else grading

    def _most_today(self) -> float | None:
        budget = self._auto.budget_per_day
        return None if budget is None else self._of_dollars(budget)

    def _of_dollars(self, dollars: float) -> float:
        """Convert dollars into the zoo's unit."""
        electricity = self._zoo.electricity
        if self._zoo.cost_unit is CostUnit.USD or electricity is None:
            return dollars
        return dollars / electricity.dollars_per_joule
