"""A simulated zoo that is watched and then switched on, through the engine and the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp
from random import Random

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.arms import shadow_level
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.costs.price import Price
from litellm_messplus.records import (
    Asker,
    CallRecord,
    LabelRecord,
    Record,
    RequestRecord,
    exploration_call_id,
    new_id,
    served_call_id,
)
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, CostSource, LabelKind
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.switching.forecast import Forecast, Happened, forecast
from litellm_messplus.switching.modes import Arm, Trial

ALPHA = 0.85
SMALL, MEDIUM, LARGE = "small", "medium", "large"
SKILL = {SMALL: 1.2, MEDIUM: 2.4, LARGE: 3.4}
"""Skill of each model: the higher, the more difficult the prompts that it can answer."""
PRICES = {SMALL: Price(0.0, 0.01), MEDIUM: Price(0.0, 0.03), LARGE: Price(0.0, 0.05)}
SLOPE = 2.5
AT_ONCE = 25
"""Requests whose labels arrive together, some time after their decisions."""


class GivenFeatures:
    """An encoder whose features are drawn, not encoded."""

    name = "given-2"
    dimension = 2
    is_fast = True


@dataclass(frozen=True)
class Answer:
    """The answer of a model: whether it satisfies, and its length."""

    satisfies: bool
    tokens: int


class SwitchedZoo:
    """A zoo in which every model's answer to every prompt is known in advance."""

    def __init__(self, database: AsyncEngine, seed: int, sample: float) -> None:
        settings = ZooSettings.model_validate(
            {"alpha": ALPHA, "mode": "watch", "before": LARGE, "watch": {"sample": sample}}
        )
        encoder: object = GivenFeatures()
        self._engine = Engine(Zoo("zoo", settings, PRICES), encoder, seed)  # type: ignore[arg-type]
        self._database = database
        self._random = Random(f"switched zoo {seed}")
        self._sample = sample

    async def watch(self, requests: int) -> Forecast:
        """Serve so many requests as before, and forecast the outcome of routing."""
        await self._serve(requests, Arm.BEFORE)
        return forecast(await self._log().aside())

    async def on(self, requests: int) -> Happened:
        """Serve so many requests as the router chooses, and return the outcome."""
        await self._serve(requests, Arm.ROUTED)
        return await self._log().happened(None)

    def _log(self) -> ObservedLog:
        zoo = self._engine.zoo
        return ObservedLog(self._database, zoo.name, zoo.settings.streams)

    async def _serve(self, requests: int, arm: Arm) -> None:
        for _ in range(0, requests, AT_ONCE):
            records = [record for _ in range(AT_ONCE) for record in self._request(arm)]
            appended = await log.append(self._database, records)
            async for entry in read_entries(self._database, appended.before, appended.last):
                self._engine.apply(entry)

    def _request(self, arm: Arm) -> list[Record]:
        random = self._random
        difficulty, other = random.gauss(0.0, 0.7), random.uniform(-1.0, 1.0)
        features = np.array([difficulty, other], dtype=np.float32)
        answers = {name: _answer(random, name, difficulty) for name in PRICES}
        is_sampled = random.random() < self._sample
        level = self._engine.zoo.levels[DEFAULT_LEVEL]
        question = Question(
            new_id(),
            level if arm is Arm.ROUTED else shadow_level(level),
            Prompt(features, None),
            200,
            self._engine.zoo.candidates,
        )
        choice = self._engine.decide(question)
        decision = choice.decision
        if arm is Arm.ROUTED:
            called: Sequence[str] = (decision.chosen, *decision.explored)
        else:
            unseen = [name for name in decision.ranking if name != LARGE][:1]
            called = (LARGE, *(unseen if is_sampled else ()))
        record = self._record(question, choice, features, called, arm)
        return [record, *_outcomes(record, called, answers)]

    def _record(
        self,
        question: Question,
        choice: Choice,
        features: Features,
        called: Sequence[str],
        arm: Arm,
    ) -> RequestRecord:
        decision, situation = choice.decision, choice.situation
        costs = {each.candidate: each.cost for each in situation.estimates}
        is_routed = arm is Arm.ROUTED
        names = (decision.chosen, *decision.explored)
        is_sampled = not is_routed and len(called) > 1
        return RequestRecord(
            request_id=question.request_id,
            created_at=datetime.now(UTC),
            zoo="zoo",
            service_level=question.level.name,
            expected_t=situation.t,
            alpha=ALPHA,
            policy="adaptive",
            asker=Asker(question.request_id, None, None, "acompletion", False),
            encoder=GivenFeatures.name,
            features=features,
            prompt_characters=question.prompt_characters,
            estimated_cost=costs,
            estimated_satisfaction={e.candidate: e.satisfaction for e in situation.estimates},
            queue=situation.queue,
            chosen=called[0],
            largest=LARGE,
            is_exploration=len(called) > 1,
            exploration_probability=decision.exploration_probability,
            reason=decision.reason,
            decision_seconds=0.001,
            aim=situation.alpha,
            expected_satisfaction=decision.expected_satisfaction,
            propensity=decision.propensity,
            exploration_calls=len(called) - 1,
            trial=Trial(
                arm,
                would_choose=None if is_routed else decision.chosen,
                would_cost=None if is_routed else sum(costs[name] for name in names),
                sample_probability=self._sample if is_sampled else None,
            ),
        )


def _answer(random: Random, name: str, difficulty: float) -> Answer:
    share = 1.0 / (1.0 + exp(SLOPE * difficulty - SKILL[name]))
    return Answer(random.random() < share, random.randrange(50, 151))


def _outcomes(
    record: RequestRecord, called: Sequence[str], answers: dict[str, Answer]
) -> list[Record]:
    """Make the calls of a request, and a check's label on each answer."""
    found: list[Record] = []
    for number, name in enumerate(called):
        answer, request_id = answers[name], record.request_id
        call_id = exploration_call_id(request_id, number) if number else served_call_id(request_id)
        call = CallRecord(
            call_id=call_id,
            request_id=request_id,
            ended_at=record.created_at,
            role=CallRole.EXPLORATION if number else CallRole.SERVED,
            status=CallStatus.SUCCESS,
            candidate=name,
            prompt_tokens=50,
            completion_tokens=answer.tokens,
            cost=PRICES[name].of(50, answer.tokens, seconds=1.0),
            cost_source=CostSource.COUNTED,
            seconds=1.0,
        )
        label = LabelRecord(
            label_id=f"{call_id}-label",
            call_id=call_id,
            request_id=request_id,
            created_at=record.created_at,
            kind=LabelKind.CHECK,
            source="check:simulated",
            value=float(answer.satisfies),
        )
        found += [call, label]
    return found
