"""What labels of a zoo may cost where they are bought as they are needed: spent and saved by the
log, and bought since."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from litellm_messplus.labels.purchasing import (
    START_ALLOWANCE,
    Spending,
    affordable,
    own_share,
    projected_day,
    room,
)
from litellm_messplus.settings.labels import BuyingSettings
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
ORDERS = 2.0
"""Times that a judge is asked to compare two answers: once in either order."""


@dataclass(slots=True)
class _Reserved:
    cost: float
    since: float
    settled_at: float | None = None


class Purse:
    """The money that the labels of one zoo may cost, where they are bought as they are needed: by
    what the log says that was saved and spent, and by what this worker has bought since. It buys
    nothing before it has looked at the log."""

    def __init__(
        self, zoo: ZooSettings, buying: BuyingSettings, start_allowance: float = START_ALLOWANCE
    ) -> None:
        self._zoo = zoo
        self._buying = buying
        self._start_allowance = start_allowance
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
        self, wanted: float, largest: float, others: float, judging: float | None
    ) -> tuple[float, float]:
        """Compute the probability with which labels of a request are bought, and what they are
        expected to cost. ``largest`` is what its call to the largest candidate is expected to cost,
        ``others`` what other candidates may, unseen, and ``judging`` what the judge will, in
        dollars; None where its price is unknown."""
        known = self._known
        if known is None:
            return 0.0, 0.0
        self._asked += largest
        one, left = self._one(largest, judging), self.left
        expected = one + others
        return affordable(wanted, left, one) if left >= MARGIN * expected else 0.0, expected

    def reserve(self, request_id: str, expected: float) -> None:
        """Reserve for a request's labels, which are bought, as much as they may cost."""
        self._reserve(request_id, MARGIN * expected)

    def covers(self, request_id: str, cost: float) -> bool:
        """Tell whether a request's labels may cost so much, now that its answers are known; what
        was not reserved for them is, where it is left."""
        reserved = self._reserved.get(request_id)
        more = cost - (0.0 if reserved is None else reserved.cost)
        if more <= 0.0:
            return True
        if more > self.left:
            return False
        self._reserve(request_id, cost)
        return True

    def settled(self, request_id: str) -> None:
        """Note that a label of it has come, and soon the log has all that it cost."""
        reserved = self._reserved.get(request_id)
        if reserved is not None:
            reserved.settled_at = time.monotonic()

    @property
    def reserved(self) -> float:
        """The cost kept aside for requests whose labels are on their way."""
        return self._aside

    @property
    def left(self) -> float:
        """The cost that this worker may still cause until the next look, for it does not know what
        the others buy meanwhile."""
        if self._known is None:
            return 0.0
        left = self._room(self._spending(self._known))
        return own_share(left + self._since_look, self._since_look, self._workers)

    @property
    def money(self) -> tuple[float, float]:
        """The cost that is left for this worker, and that of all labels of today, at most."""
        if self._known is None:
            return 0.0, 0.0
        spending = self._spending(self._known)
        return self.left, spending.today + self._room(spending)

    def _room(self, spending: Spending) -> float:
        return room(
            spending,
            self._buying.share_of_saved,
            self._start_allowance,
            self._most_today(),
        )

    def _reserve(self, request_id: str, cost: float) -> None:
        before = self._reserved.pop(request_id, None)
        more = cost - (0.0 if before is None else before.cost)
        self._reserved[request_id] = _Reserved(cost, time.monotonic())
        self._aside += more
        self._since_look += more
        if len(self._reserved) > MOST_RESERVED:
            self._aside -= self._reserved.popitem(last=False)[1].cost

    def _spending(self, known: LabelCosts) -> Spending:
        aside, so_far = self.reserved, known.largest_today + self._asked
        return Spending(
            saved=known.saved,
            spent=known.unseen + self.of_dollars(known.judging) + aside,
            today=known.unseen_today + self.of_dollars(known.judging_today) + aside,
            day_at_largest=max(known.largest_before, projected_day(so_far, self._hours)),
        )

    def _one(self, largest: float, judging: float | None) -> float:
        """Estimate the labels of one request: an answer of the largest to compare with, and the
        judge, which is taken for as expensive as the largest while its price is unknown."""
        compares = self._buying.how == "compare"
        if judging is None:
            judge = (ORDERS if compares else 1.0) * largest
        else:
            judge = self.of_dollars(judging)
        return largest + judge if compares else judge

    def _most_today(self) -> float | None:
        budget = self._buying.budget_per_day
        return None if budget is None else self.of_dollars(budget)

    def of_dollars(self, dollars: float) -> float:
        """Convert dollars into the zoo's unit."""
        found = self._zoo.of_dollars(dollars)
        return dollars if found is None else found
