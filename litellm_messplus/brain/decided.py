"""Decision of a request: it is placed in its conversation, decided, and recorded, in full or as far
as it is known before the decision."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.brain.buying import Buyer
from litellm_messplus.brain.holds import Holds, Standing
from litellm_messplus.brain.messages import Admission, Asked, Pin
from litellm_messplus.core.decision import Reason, Situation
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.held import Gated, baseline
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import VERSION, read_surface
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.settings.promise import SecondAnswer, ServiceLevel
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import LITELLM, Arm, Trial

FEATURES_SHARE = 0.8
"""Share of the deadline spent waiting for features. The rest is for a busy event loop, and for the
decision."""
NONE = frozenset[str]()


@dataclass(frozen=True, slots=True)
class Intake:
    """A request before it is decided."""

    engine: Engine
    asked: Asked
    level: ServiceLevel
    """The promise that it counts towards."""
    trial: Trial
    """Its arm."""

    @property
    def zoo(self) -> Zoo:
        return self.engine.zoo

    @property
    def request_id(self) -> str:
        return self.asked.request_id


@dataclass(frozen=True, slots=True)
class DecidedRequest:
    """A decided request."""

    intake: Intake
    admission: Admission
    question: Question
    choice: Choice
    features: Features | None
    """None if they did not come in time."""
    encode_seconds: float
    seconds: float
    dropped: Reason | None
    """Why the decision is not followed: no deployment is healthy, so LiteLLM calls none, or it came
    too late; None if it is followed."""
    bought: float | None
    """The probability with which labels of its answers are bought."""
    standing: Standing | None = None
    """Its place in a conversation."""
    pin: Pin | None = None
    """The candidate that holds it."""

    @property
    def reason(self) -> Reason:
        """The reason as it is logged."""
        return self.dropped or self.choice.decision.reason

    @property
    def ranking(self) -> tuple[str, ...]:
        """The candidates in the order in which to try them. If the decision came too late: only the
        candidate that holds the request, or none, so that LiteLLM chooses. A request that LiteLLM
        refuses keeps its ranking, since a retry may find a deployment after all."""
        if self.dropped is not Reason.DEADLINE_MISSED:
            return self.choice.decision.ranking
        return () if self.pin is None else (self.pin.candidate,)

    @property
    def explored(self) -> tuple[str, ...]:
        """The candidates that are called in addition, unseen."""
        return self.choice.decision.explored if self.dropped is None else ()

    @property
    def reads(self) -> bool:
        """Whether the answer is read to keep or replace it: not where the decision is not followed,
        its conversation holds it, or other candidates answer it unseen."""
        decision = self.choice.decision
        is_free = self.dropped is None and self.pin is None and not decision.explored
        return decision.reads and is_free


class Recorder:
    """The writer of a request's record."""

    def __init__(self, settings: MessplusSettings) -> None:
        self._settings = settings

    def undecided(self, intake: Intake, serves: str, reason: Reason) -> RequestRecord:
        """Build the record of a request that is served as before, for that reason without a
        decision."""
        state, level = intake.engine.state, intake.level.name
        return RequestRecord(
            **self._known(intake),
            expected_t=state.requests[level] + 1,
            queue=state.policy.queue(level),
            chosen=serves,
            largest=intake.zoo.largest,
            reason=reason,
        )

    def decided(self, decided: DecidedRequest) -> RequestRecord:
        """Build the record of a decided request."""
        intake, standing, question = decided.intake, decided.standing, decided.question
        situation, decision = decided.choice.situation, decided.choice.decision
        everyone, features = situation.everyone, decided.features
        why = decided.admission.why
        record = RequestRecord(
            **self._known(intake),
            expected_t=situation.t,
            features=features,
            prompt_characters=question.prompt_characters,
            estimated_cost={e.candidate: e.cost for e in everyone},
            estimated_satisfaction={e.candidate: e.satisfaction for e in everyone},
            queue=situation.queue,
            chosen=decision.chosen,
            largest=baseline(situation) if question.is_gated else intake.zoo.largest,
            is_exploration=decision.is_exploration,
            exploration_probability=decision.exploration_probability,
            reason=decided.reason,
            decision_seconds=decided.seconds,
            aim=situation.alpha,
            expected_satisfaction=decision.expected_satisfaction,
            price=decision.price,
            propensity=decision.propensity,
            exploration_calls=len(decision.explored),
            encode_seconds=None if features is None else decided.encode_seconds,
            # The journal would drop it too, but by copying a record of fifty fields.
            prompt=intake.asked.conversation.text if self._settings.store_text else None,
            surface=question.prompt.surface,
            surface_version=VERSION,
            is_within_reach=decision.is_within_reach,
            label_probability=decided.bought,
            gated=Gated(question.candidates, why) if question.is_gated else None,
            place=None if standing is None else standing.logged(decided.reason),
            is_alone=question.is_alone,
        )
        return record if decided.dropped is None else _unclaimed(record, decided.pin)

    def _known(self, intake: Intake) -> dict[str, Any]:
        zoo, asked = intake.zoo, intake.asked
        return {
            "request_id": asked.request_id,
            "created_at": datetime.now(UTC),
            "zoo": zoo.name,
            "service_level": intake.level.name,
            "alpha": intake.level.alpha,
            "policy": zoo.settings.policy,
            "asker": asked.asker,
            "encoder": intake.engine.encoder.name,
            "trial": intake.trial,
            "names": asked.names,
        }


def _unclaimed(record: RequestRecord, pin: Pin | None) -> RequestRecord:
    """Remove what does not hold for a decision that is not followed: nothing is expected, no other
    candidate is called, no labels are bought. One that came too late chose no candidate either."""
    unclaimed = replace(
        record,
        is_exploration=False,
        exploration_calls=0,
        label_probability=None,
        expected_satisfaction=None,
    )
    if record.reason is Reason.NONE_HEALTHY:
        return unclaimed
    return replace(
        unclaimed,
        chosen=LITELLM if pin is None else pin.candidate,
        exploration_probability=0.0,
        propensity=None,
    )


def in_shadow(
    record: RequestRecord, decided: DecidedRequest, serves: str, called: tuple[str, ...]
) -> RequestRecord:
    """Build the record of a request that ``serves`` serves as before, with the shadow decision;
    ``called`` are the candidates that are called unseen."""
    decision, costs = decided.choice.decision, record.estimated_cost
    is_refused = record.reason is Reason.NONE_HEALTHY
    names = (decision.chosen, *decision.explored)
    return replace(
        record,
        chosen=serves,
        is_exploration=bool(called),
        exploration_calls=len(called),
        trial=replace(
            record.trial,
            would_choose=None if is_refused else decision.chosen,
            would_cost=None if is_refused else sum(costs.get(name, 0.0) for name in names),
            sample_probability=decided.intake.zoo.settings.watch.sample if called else None,
        ),
    )


@dataclass(eq=False, repr=False)
class RequestDecider:
    """The decider of requests: it waits for the features of each until the decision is nearly due,
    decides it, draws whether labels of its answers are bought, and drops a decision that came too
    late."""

    settings: MessplusSettings
    features: FeatureService
    holds: Holds
    buyers: Mapping[str, Buyer]
    counters: Counters

    async def decide(self, intake: Intake, admission: Admission, began: float) -> DecidedRequest:
        """Decide a request, of which a worker ``began`` to read at that time of the performance
        counter. Only a routed request has a place in a conversation, and only a routed one can be
        decided too late."""
        engine, asked = intake.engine, intake.asked
        waiting = time.perf_counter()
        allowed = FEATURES_SHARE * self.settings.deadline_seconds
        features = await self.features.features(asked.conversation, allowed)
        encode_seconds = time.perf_counter() - waiting
        question = _question(intake, admission, features)
        is_routed, standing = intake.trial.arm is Arm.ROUTED, None
        if is_routed:
            standing = self.holds.standing(asked, question, admission.barred)
        if standing is not None:
            question = standing.question
        held = None if standing is None else standing.choose(engine)
        choice, bought = self._choose(intake, question) if held is None else (held, None)
        seconds = time.perf_counter() - began
        # The wait for a slow encoder is over: dropping the decision would save none of it.
        waited = 0.0 if engine.encoder.is_fast else encode_seconds
        is_late = is_routed and self._is_late(seconds, waited)
        dropped = self._dropped(intake, is_late=is_late)
        pin = None if standing is None else standing.pin if is_late else standing.followed(choice)
        known = (features, encode_seconds, seconds, dropped, bought, standing, pin)
        return DecidedRequest(intake, admission, question, choice, *known)

    def _choose(self, intake: Intake, question: Question) -> tuple[Choice, float | None]:
        """Decide, and draw whether labels of the answers are bought; return the probability too."""
        engine, buyer = intake.engine, self.buyers.get(intake.zoo.name)
        if buyer is None:
            return engine.decide(question), None
        bought: float | None = None

        def labelled(situation: Situation) -> bool | None:
            nonlocal bought
            bought, is_labelled = buyer.purchase(engine, question, intake.asked, situation)
            return is_labelled

        choice = engine.decide(question, labelled)
        if bought is not None:
            decision = buyer.with_comparison(choice.decision, choice.situation)
            choice = replace(choice, decision=decision)
        return choice, bought

    def _is_late(self, seconds: float, waited: float) -> bool:
        """Tell whether a decision took longer than the operator allows, and count it."""
        is_late = seconds - waited > self.settings.deadline_seconds
        if is_late:
            self.counters.failure("deadlines_missed", f"a decision took {seconds * 1000:.1f} ms")
        return is_late

    def _dropped(self, intake: Intake, *, is_late: bool) -> Reason | None:
        """Return why a decision is not followed, None if it is. If it is not, no satisfaction is
        expected of it, and nothing is paid for its labels."""
        if intake.asked.replicas and not is_late:
            return None
        intake.engine.expect_nothing(intake.request_id)
        buyer = self.buyers.get(intake.zoo.name)
        if buyer is not None:
            buyer.give_back(intake.request_id, intake.asked.key_hash)
        return Reason.DEADLINE_MISSED if intake.asked.replicas else Reason.NONE_HEALTHY


def _question(intake: Intake, admission: Admission, features: Features | None) -> Question:
    """Build the question of a request. Any candidate with a healthy deployment that can take it may
    serve it; if there are none, all may, since a retry may find a deployment after all."""
    zoo, asked = intake.zoo, intake.asked
    there = frozenset(zoo.present)
    able = there & (admission.eligible or NONE) or there & asked.candidates
    reads = zoo.settings.second_answer is SecondAnswer.AUTO and intake.trial.arm is Arm.ROUTED
    return Question(
        asked.request_id,
        intake.level,
        Prompt(features, read_surface(asked.conversation)),
        len(asked.conversation.text),
        tuple([name for name in zoo.present if name in able or not able]),
        asked.most_completion_tokens,
        admission.prompt_tokens,
        is_gated=admission.eligible is not None,
        is_alone=asked.is_alone,
        may_go_on=reads and asked.may_go_on and not asked.is_alone,
    )
