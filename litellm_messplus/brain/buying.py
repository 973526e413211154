"""Buying labels: which requests get them, and which candidates are called unseen for them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.brain.messages import Asked
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.surface import Surface
from litellm_messplus.costs.usage import RecentMean
from litellm_messplus.labels.buying import (
    LEAST,
    START_ALLOWANCE,
    KeyShares,
    Spending,
    affordable,
    is_drawn,
    need,
    projected_day,
    rate,
    room,
)
from litellm_messplus.labels.checks.shipped import REFERENCE
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.source import Finding, JudgedRequest
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.purse import MOST, Purse
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.judging import LabelCosts, first_request, label_costs

# What bought labels may cost, by the log.

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

    def learn(self, known: LabelCosts, hours: float, read_at: float) -> None:
        """Update from what the log held at ``read_at`` on the clock. ``hours`` is the time since
        the zoo's first request of today; until the next reading ``workers`` share what is left."""
        self._known, self._hours, self._drawn = known, hours, 0.0
        self._purse.learn(self._room(known), read_at)

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


LOOK_SECONDS = 5.0
"""Seconds between two readings of what all workers spent."""


@dataclass(eq=False, repr=False)
class Buyer:
    """The buyer of one zoo: it draws the requests whose labels are bought, prices each by what the
    judge will read, and limits each key to its share of the budget."""

    zoo: ZooSettings
    buying: BuyingSettings
    judge: Judge
    counters: Counters
    seed: int

    def __post_init__(self) -> None:
        self.purse = LabelPurse(self.zoo, self.buying) if self.zoo.label_rate is None else None
        self._compares = self.buying.how == "compare"
        self._keys = KeyShares()
        self._expected: Bounded[str, float] = Bounded(MOST)
        self.judge.is_paid = self.pays

    def purchase(
        self,
        engine: Engine,
        question: Question,
        request: Asked,
        situation: Situation,
    ) -> tuple[float | None, bool | None]:
        """Return the probability with which labels of the request's answers are bought, None if
        none are; and whether all answers will be labelled, None if known only from the log."""
        self._keys.count(request.key_hash, datetime.now(UTC).date())
        if self.zoo.labels.checks.reference and REFERENCE in request.metadata:
            return None, True
        if question.is_alone and self._compares:  # no other candidate answers it
            return None, False
        bought = self._draw(engine, question, request, situation)
        if bought is not None:
            return bought, True
        # A check of the operator's may label any answer, which only the log shows.
        return None, None if self.zoo.labels.checks.callables else False

    def _draw(
        self, engine: Engine, question: Question, request: Asked, situation: Situation
    ) -> float | None:
        """Draw whether labels of the request's answers are bought; return the probability of that
        if they are, else None."""
        asking = self.judge.cost.of_request(request.conversation.text)
        judging = None if asking is None else (ORDERS if self._compares else 1.0) * asking
        probability, expected = question.level.label_rate or 0.0, judging or 0.0
        if self.purse is not None:
            wanted = self._wanted(engine, question.level, question.prompt.surface)
            costs = unseen_costs(situation)
            probability, expected = self.purse.probability(
                wanted, *costs, judging, request.key_hash
            )
        if not is_drawn(self.seed, question.request_id, probability):
            return None
        if not self.judge.has_budget(judging or 0.0) or not self._is_within_share(
            request.key_hash, expected
        ):
            self.counters.add("judge_over_budget")
            return None
        self._reserve(question.request_id, request.key_hash, expected)
        return probability

    def pays(self, judged: JudgedRequest, dollars: float) -> bool:
        """Tell whether a grading is paid whose cost is now known: long answers may make it cost
        more than expected."""
        cost = dollars if self.purse is None else self.purse.of_dollars(dollars)
        more = cost - self._expected.get(judged.request_id, 0.0)
        if more <= 0.0:
            return True
        is_paid = self._is_within_share(judged.key_hash, more) and (
            self.purse is None or self.purse.covers(judged.request_id, cost)
        )
        if is_paid:
            self._count(judged.request_id, judged.key_hash, more)
        else:
            self.give_back(judged.request_id, judged.key_hash)
        return is_paid

    def give_back(self, request_id: str, key: str | None) -> None:
        """Release the expected cost of labels that will not come."""
        self._keys.spend(key, -self._expected.pop(request_id, 0.0))
        if self.purse is not None:
            self.purse.settled(request_id)

    def _is_within_share(self, key: str | None, cost: float) -> bool:
        money = self.judge.money() if self.purse is None else self.purse.money
        return money is None or self._keys.allows(key, cost, *money)

    def _reserve(self, request_id: str, key: str | None, expected: float) -> None:
        if self.purse is not None:
            self.purse.reserve(request_id, expected)
        self._count(request_id, key, expected)

    def _count(self, request_id: str, key: str | None, cost: float) -> None:
        """Add to the cost that a request's labels are expected to have for its key."""
        self._keys.spend(key, cost)
        self._expected[request_id] = self._expected.get(request_id, 0.0) + cost

    def with_comparison(self, decision: Decision, situation: Situation) -> Decision:
        """Add to the decision the answer to compare with: the largest candidate's, or a cheaper
        candidate's if the largest serves."""
        if not self._compares:
            return decision
        called = {decision.chosen, *decision.explored}
        extra = compared_too(called, situation)
        if extra is None:
            return decision
        explored = (*decision.explored, extra)
        return replace(decision, explored=explored, is_exploration=True)

    def _wanted(self, engine: Engine, level: ServiceLevel, surface: Surface | None) -> float:
        if level.label_rate is not None:
            return level.label_rate
        policy = engine.state.policy
        if not isinstance(policy, AdaptivePolicy):
            return 0.0
        if not self.judge.counts:  # its labels have no weight: a few show whether that still holds
            return LEAST
        return rate(need(policy.predictor, engine.zoo.largest, level.alpha, surface))


def compared_too(called: set[str], situation: Situation) -> str | None:
    """Choose the candidate that must answer too so that there are two answers to compare; None if
    there are two already, or the largest is not healthy."""
    healthy = {each.candidate: each for each in situation.estimates}
    if situation.largest not in healthy:
        return None
    if situation.largest not in called:
        return situation.largest
    others = [each for name, each in healthy.items() if name != situation.largest]
    if len(called) > 1 or not others:
        return None
    # The best of the cheaper ones: whether it is as good as the largest matters most.
    return max(others, key=lambda each: each.satisfaction).candidate


def unseen_costs(situation: Situation) -> tuple[float, float]:
    """Return the expected cost of an unseen call to the largest candidate, and the most that those
    to all others may cost: one of them serves, or the largest does at no extra cost."""
    largest = sum(e.cost for e in situation.estimates if e.candidate == situation.largest)
    others = [e.cost for e in situation.estimates if e.candidate != situation.largest]
    return largest, sum(others) - min(others, default=0.0)


class Buyers:
    """The buyers of all zoos that buy labels; ``of_zoo`` maps each zoo to its buyer."""

    def __init__(
        self,
        settings: MessplusSettings,
        judges: Mapping[str, Judge],
        database: AsyncEngine,
        counters: Counters,
    ) -> None:
        self.of_zoo = {
            name: Buyer(zoo, zoo.buy_labels, judges[name], counters, settings.seed)
            for name, zoo in settings.zoos.items()
            if zoo.buy_labels is not None
        }
        self._purses = {
            name: buyer.purse for name, buyer in self.of_zoo.items() if buyer.purse is not None
        }
        self._database = database

    def start(self, periodic: Periodic) -> None:
        """Begin to read what labels cost, in the running event loop."""
        if self._purses:
            failed = "what labels cost was not read"
            periodic.every(LOOK_SECONDS, self.look, "label_cost_failures", failed)

    def found(self, finding: Finding) -> None:
        """Note that a label has come."""
        if finding.probability is None:
            return
        for purse in self._purses.values():
            purse.settled(finding.request_id)

    async def look(self) -> None:
        """Read what all workers spent and saved. Raises SQLAlchemyError."""
        read_at, now = time.monotonic(), datetime.now(UTC)
        today = now.date()
        async with self._database.connect() as connection:
            found = await label_costs(connection, today, today - timedelta(days=1))
            hours = {zoo: await _hours(connection, zoo, now) for zoo in self._purses}
        for zoo, purse in self._purses.items():
            purse.learn(found.get(zoo, LabelCosts()), hours[zoo], read_at)


async def _hours(connection: AsyncConnection, zoo: str, now: datetime) -> float:
    """Count the hours since the zoo's first request of today; 0 if there is none."""
    first = await first_request(connection, zoo, now.date())
    return 0.0 if first is None else (now - first).total_seconds() / 3600.0
