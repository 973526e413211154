"""Buying labels: which requests get them, and which candidates are called unseen for them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.brain.asked import Asked
from litellm_messplus.brain.label_purse import ORDERS, LabelPurse
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.surface import Surface
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.labels.buying import LEAST, KeyShares, is_drawn, need, rate
from litellm_messplus.labels.checks.shipped import REFERENCE
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.source import Finding, JudgedRequest
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.purse import MOST
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.judging import LabelCosts, first_request, label_costs
from litellm_messplus.store.worker_counters import running

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
            workers = await running(connection, now)
        for zoo, purse in self._purses.items():
            purse.learn(found.get(zoo, LabelCosts()), hours[zoo], read_at, workers)


async def _hours(connection: AsyncConnection, zoo: str, now: datetime) -> float:
    """Count the hours since the zoo's first request of today; 0 if there is none."""
    first = await first_request(connection, zoo, now.date())
    return 0.0 if first is None else (now - first).total_seconds() / 3600.0
