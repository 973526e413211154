"""What labels of a zoo may cost where they are bought as they are needed: spent and saved by the
log, and bought since."""

from litellm_messplus.labels.buying import (
    START_ALLOWANCE,
    Spending,
    affordable,
    projected_day,
    room,
)
from litellm_messplus.runtime.purse import Purse
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store.judging import LabelCosts

SETTLED_SECONDS = 2.0
"""After its last label, what a request cost is in the log."""
MARGIN = 2.0
"""Times what labels are expected to cost that must be left: an answer may be longer than usual."""
ORDERS = 2.0
"""Times that a judge is asked to compare two answers: once in either order."""


class LabelPurse:
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
        self._purse = Purse(SETTLED_SECONDS)

    def learn(self, known: LabelCosts, hours: float, read_at: float, workers: int = 1) -> None:
        """Learn what the log held at ``read_at`` on the clock: today is so many hours old, for the
        zoo. Until the next reading so many workers share what is left."""
        self._known, self._hours, self._asked = known, hours, 0.0
        self._purse.learn(self._room(known), read_at, workers)

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
        self._purse.known = self._room(known)
        one, left = self._one(largest, judging), self.left
        expected = one + others
        return affordable(wanted, left, one) if left >= MARGIN * expected else 0.0, expected

    def reserve(self, request_id: str, expected: float) -> None:
        """Reserve for a request's labels, which are bought, as much as they may cost."""
        self._purse.reserve(request_id, MARGIN * expected)

    def covers(self, request_id: str, cost: float) -> bool:
        """Tell whether a request's labels may cost so much, now that its answers are known; what
        was not reserved for them is, where it is left."""
        more = cost - self._purse.cost(request_id)
        if more > max(self.left, 0.0):
            return False
        if more > 0.0:
            self._purse.reserve(request_id, cost)
        return True

    def settled(self, request_id: str) -> None:
        """Note that a label of it has come, and soon the log has all that it cost."""
        self._purse.settled(request_id)

    @property
    def reserved(self) -> float:
        """The cost reserved for requests whose labels are on their way."""
        return self._purse.reserved

    @property
    def left(self) -> float:
        """The cost that this worker may still cause until the next look, for it does not know what
        the others buy meanwhile."""
        return self._purse.left

    @property
    def money(self) -> tuple[float, float]:
        """The cost that is left for this worker, and that of all labels of today, at most."""
        if self._known is None:
            return 0.0, 0.0
        return self.left, self._spending(self._known).today + self._room(self._known)

    def _room(self, known: LabelCosts) -> float:
        return room(
            self._spending(known),
            self._buying.share_of_saved,
            self._start_allowance,
            self._most_today(),
        )

    def _spending(self, known: LabelCosts) -> Spending:
        so_far = known.largest_today + self._asked
        return Spending(
            saved=known.saved,
            spent=known.unseen + self.of_dollars(known.judging),
            today=known.unseen_today + self.of_dollars(known.judging_today),
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
