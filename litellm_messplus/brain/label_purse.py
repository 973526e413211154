"""Budget for labels of a zoo that are bought as needed: computed from what was spent and saved
according to the log, and bought since.

The probability of a draw follows the usual cost of its key's labels, not that of this request:
where expensive prompts were drawn more rarely, or never, the judged ones were easier than the
others, and `labels: auto` ended 7 points below alpha on the tiny zoo (docs/evidence/labels.md)."""

from litellm_messplus.costs.usage import RecentMean
from litellm_messplus.labels.buying import (
    START_ALLOWANCE,
    Spending,
    affordable,
    projected_day,
    room,
)
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.purse import Purse
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store.judging import LabelCosts

SETTLED_SECONDS = 2.0
"""Seconds after its last label until all that a request cost is in the log."""
MARGIN = 2.0
"""Multiple of the expected cost of labels that must be left: an answer may be unusually long."""
PROMPTS = 2.0
"""Multiple, in addition, of the usual cost, so that an expensive prompt can mostly be paid too."""
KEYS = 1_000
"""Number of keys whose usual cost is kept."""
ORDERS = 2.0
"""Number of times that a judge compares two answers: once in either order."""


class LabelPurse:
    """The budget for the labels of one zoo that are bought as needed, from what was saved and spent
    according to the log, and what this worker has bought since. Nothing is bought before the log
    was first read."""

    def __init__(
        self, zoo: ZooSettings, buying: BuyingSettings, start_allowance: float = START_ALLOWANCE
    ) -> None:
        self._zoo = zoo
        self._buying = buying
        self._start_allowance = start_allowance
        self._known: LabelCosts | None = None
        self._hours = 0.0
        self._drawn = 0.0
        self._usual: Bounded[str | None, tuple[RecentMean, RecentMean]] = Bounded(KEYS)
        self._purse = Purse(SETTLED_SECONDS)

    def learn(self, known: LabelCosts, hours: float, read_at: float, workers: int = 1) -> None:
        """Update from what the log held at ``read_at`` on the clock. ``hours`` is the time since
        the zoo's first request of today; until the next reading ``workers`` share what is left."""
        self._known, self._hours, self._drawn = known, hours, 0.0
        self._purse.learn(self._room(known), read_at, workers)

    def probability(
        self,
        wanted: float,
        largest: float,
        others: float,
        judging: float | None,
        key: str | None = None,
    ) -> tuple[float, float]:
        """Compute the probability with which labels of a request of that ``key`` are bought, and
        their expected cost. ``largest`` is the expected cost of its call to the largest candidate,
        ``others`` the most that unseen calls to the others may cost, and ``judging`` the expected
        cost of the judge in dollars; None if its price is unknown."""
        known = self._known
        if known is None:
            return 0.0, 0.0
        self._drawn += largest
        self._purse.known = self._room(known)
        one, left = self._one(largest, judging), self.left
        expected = one + others
        means = self._usual.newest(key, lambda: (RecentMean(one), RecentMean(expected)))
        usual, usual_most = (mean.value for mean in means)  # of the key's earlier requests
        means[0].add(one)
        means[1].add(expected)
        if left < MARGIN * max(expected, PROMPTS * usual_most):
            return 0.0, expected
        return affordable(wanted, left, usual), expected

    def reserve(self, request_id: str, expected: float) -> None:
        """Reserve the most that a request's bought labels may cost: ``MARGIN`` times expected."""
        self._purse.reserve(request_id, MARGIN * expected)

    def covers(self, request_id: str, cost: float) -> bool:
        """Tell whether the budget covers the cost of a request's labels, now that its answers are
        known; if so, reserve what was not reserved yet."""
        more = cost - self._purse.cost(request_id)
        if more > max(self.left, 0.0):
            return False
        if more > 0.0:
            self._purse.reserve(request_id, cost)
        return True

    def settled(self, request_id: str) -> None:
        """Note that a label of the request has come; its cost will soon be in the log."""
        self._purse.settled(request_id)

    @property
    def reserved(self) -> float:
        """The cost reserved for requests whose labels have not come yet."""
        return self._purse.reserved

    @property
    def left(self) -> float:
        """The cost that this worker may still cause until the next reading of the log; what the
        others buy meanwhile is unknown."""
        return self._purse.left

    @property
    def money(self) -> tuple[float, float]:
        """The cost that is left for this worker, and the most that all labels of today may cost."""
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
        so_far = known.largest_today + self._drawn
        return Spending(
            saved=known.saved,
            spent=known.unseen + self.of_dollars(known.judging),
            today=known.unseen_today + self.of_dollars(known.judging_today),
            day_at_largest=max(known.largest_before, projected_day(so_far, self._hours)),
        )

    def _one(self, largest: float, judging: float | None) -> float:
        """Estimate the cost of one request's labels: an answer of the largest to compare with, and
        the judge, which is assumed to cost as much as the largest while its price is unknown."""
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
