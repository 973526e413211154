"""Buying labels: which requests get them, and which candidates answer unseen for that."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.deciding.decider import Engine, Question
from litellm_messplus.labels.buying import (
    LEAST,
    KeyShares,
    is_drawn,
    need,
    rate,
)
from litellm_messplus.labels.checks.shipped import METADATA_KEY
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.source import Asked, Finding
from litellm_messplus.prediction.surface import Surface
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.purse import MOST
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.serving.label_purse import ORDERS, LabelPurse
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.state.adaptive_policy import AdaptivePolicy
from litellm_messplus.store.judging import LabelCosts, first_asked, label_costs
from litellm_messplus.store.worker_counters import running

logger = logging.getLogger("litellm_messplus")

LOOK_SECONDS = 5.0
"""Between two looks at what all workers spent."""


class Buyer:
    """The buyer of one zoo: it draws the requests whose labels are bought, prices each by what the
    judge will read, and holds each key to its part of the money."""

    def __init__(
        self,
        zoo: ZooSettings,
        buying: BuyingSettings,
        judge: Judge,
        counters: Counters,
        seed: int,
    ) -> None:
        self.purse = LabelPurse(zoo, buying) if zoo.label_rate is None else None
        self._zoo = zoo
        self._judge = judge
        self._counters = counters
        self._seed = seed
        self._compares = buying.how == "compare"
        self._keys = KeyShares()
        self._expected: Bounded[str, float] = Bounded(MOST)
        judge.ask_before(self.pays)

    def purchase(
        self,
        engine: Engine,
        question: Question,
        request: IncomingRequest,
        situation: Situation,
    ) -> tuple[float | None, bool | None]:
        """Return the probability with which labels of the request's answers are bought, None where
        none are; and whether all answers will be labelled, None where only the log can tell."""
        self._keys.asked(request.key_hash, datetime.now(UTC).date())
        if self.is_free(request):
            return None, True
        if question.is_alone and self._compares:  # nothing is answered beside it
            return None, False
        bought = self._draw(engine, question, request, situation)
        return bought, self.otherwise() if bought is None else True

    def _draw(
        self, engine: Engine, question: Question, request: IncomingRequest, situation: Situation
    ) -> float | None:
        """Draw whether labels of the request's answers are bought; return the probability of that
        where they are, None where they are not."""
        asking = self._judge.cost.of_request(request.conversation.text)
        judging = None if asking is None else (ORDERS if self._compares else 1.0) * asking
        probability, expected = question.level.label_rate or 0.0, judging or 0.0
        if self.purse is not None:
            wanted = self._wanted(engine, question.level, question.prompt.surface)
            costs = unseen_costs(situation)
            probability, expected = self.purse.probability(wanted, *costs, judging)
        if not is_drawn(self._seed, question.request_id, probability):
            return None
        if not self._judge.has_budget(judging or 0.0) or not self._is_within_share(
            request.key_hash, expected
        ):
            self._counters.add("judge_over_budget")
            return None
        self._reserve(question.request_id, request.key_hash, expected)
        return probability

    def pays(self, asked: Asked, dollars: float) -> bool:
        """Tell whether a grading is paid that is now known to cost so much: long answers may make
        it more than was expected."""
        cost = dollars if self.purse is None else self.purse.of_dollars(dollars)
        more = cost - self._expected.get(asked.request_id, 0.0)
        if more <= 0.0:
            return True
        is_paid = self._is_within_share(asked.key_hash, more) and (
            self.purse is None or self.purse.covers(asked.request_id, cost)
        )
        if is_paid:
            self._count(asked.request_id, asked.key_hash, more)
        else:
            self.give_back(asked.request_id, asked.key_hash)
        return is_paid

    def give_back(self, request_id: str, key: str | None) -> None:
        """Let go of what was expected of labels that will not come."""
        self._keys.spend(key, -self._expected.pop(request_id, 0.0))
        if self.purse is not None:
            self.purse.settled(request_id)

    def _is_within_share(self, key: str | None, cost: float) -> bool:
        money = self._judge.money() if self.purse is None else self.purse.money
        return money is None or self._keys.allows(key, cost, *money)

    def _reserve(self, request_id: str, key: str | None, expected: float) -> None:
        if self.purse is not None:
            self.purse.reserve(request_id, expected)
        self._count(request_id, key, expected)

    def _count(self, request_id: str, key: str | None, cost: float) -> None:
        """Count what labels of a request are expected to cost its key, or how much more."""
        self._keys.spend(key, cost)
        self._expected[request_id] = self._expected.get(request_id, 0.0) + cost

    def is_free(self, request: IncomingRequest) -> bool:
        """Tell whether a check will label every answer, so that no label need be bought."""
        return self._zoo.labels.checks.reference and METADATA_KEY in request.client_metadata

    def otherwise(self) -> bool | None:
        """Tell whether answers are labelled that nothing is bought for: None where a check of the
        operator's may, and only the log can tell."""
        return None if self._zoo.labels.checks.callables else False

    def beside(self, decision: Decision, situation: Situation) -> Decision:
        """Add to the decision the answers to compare: the largest's, and, where that is served, the
        answer of a cheaper candidate."""
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
        if not self._judge.counts:  # its labels weigh nothing: only to see whether that is still so
            return LEAST
        return rate(need(policy.predictor, engine.zoo.largest, level.alpha, surface))


def compared_too(called: set[str], situation: Situation) -> str | None:
    """Choose the candidate that must answer too so that there is something to compare; None where
    there is already, or the largest is not healthy."""
    healthy = {each.candidate: each for each in situation.estimates}
    if situation.largest not in healthy:
        return None
    if situation.largest not in called:
        return situation.largest
    others = [each for name, each in healthy.items() if name != situation.largest]
    if len(called) > 1 or not others:
        return None
    # The best of the cheaper ones: whether it is as good decides the most.
    return max(others, key=lambda each: each.satisfaction).candidate


def unseen_costs(situation: Situation) -> tuple[float, float]:
    """Return what an unseen call to the largest candidate is expected to cost, and what those to
    all others may: one of them serves, or the largest does and costs nothing beside."""
    largest = sum(e.cost for e in situation.estimates if e.candidate == situation.largest)
    others = [e.cost for e in situation.estimates if e.candidate != situation.largest]
    return largest, sum(others) - min(others, default=0.0)


class Buyers:
    """The buyers of all zoos that buy labels: ``of_zoo`` holds each by its zoo."""

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
        self._counters = counters

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
        """Take what all workers spent and saved. Raises SQLAlchemyError."""
        read_at, now = time.monotonic(), datetime.now(UTC)
        today = now.date()
        async with self._database.connect() as connection:
            found = await label_costs(connection, today, today - timedelta(days=1))
            hours = {zoo: await _hours(connection, zoo, now) for zoo in self._purses}
            workers = await running(connection, now)
        for zoo, purse in self._purses.items():
            purse.learn(found.get(zoo, LabelCosts()), hours[zoo], read_at, workers)


async def _hours(connection: AsyncConnection, zoo: str, now: datetime) -> float:
    """Count the hours since the zoo was first asked for today."""
    first = await first_asked(connection, zoo, now.date())
    return 0.0 if first is None else (now - first).total_seconds() / 3600.0


def idle_reasons(zoos: Mapping[str, ZooSettings]) -> Sequence[str]:
    """Explain of each zoo that is to buy labels why it never will: told at the start."""
    told = []
    for name, zoo in zoos.items():
        buying = zoo.buy_labels
        if buying is None:
            continue
        limits = [
            limit
            for limit, most in (
                ("budget_per_day", buying.budget_per_day),
                ("gradings_per_day", buying.gradings_per_day),
                ("label_rate", zoo.label_rate),
            )
            if most == 0
        ]
        if limits:
            told.append(f"{name}: no labels are bought, for {' and '.join(limits)} is 0")
    return told
