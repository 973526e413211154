"""Decision of a request: it is read, placed in its conversation, decided, and recorded, in full or
as far as it is known before the decision."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.core.decision import Reason, Situation
from litellm_messplus.core.held import Gated, baseline
from litellm_messplus.core.surface import VERSION
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Choice
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.serving.buying import Buyer
from litellm_messplus.serving.deployments.deployment import Deployment
from litellm_messplus.serving.holding.holds import Holds, Pin, Standing
from litellm_messplus.serving.reading import Intake, ReadRequest, RequestReader
from litellm_messplus.serving.surfaces.identity import asker_of, names_of
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.switching.modes import LITELLM, Arm


@dataclass(frozen=True, slots=True)
class DecidedRequest:
    """A decided request. ``dropped`` is the reason why the decision is not followed: no deployment
    is healthy, so LiteLLM calls none, or the decision came too late; None if it is followed.
    ``bought`` is the probability with which labels of its answers are bought.
    ``standing`` is its place in a conversation, and ``pin`` the candidate that holds it."""

    read: ReadRequest
    choice: Choice
    seconds: float
    dropped: Reason | None
    bought: float | None
    standing: Standing | None = None
    pin: Pin | None = None

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
        read, standing = decided.read, decided.standing
        situation, decision = decided.choice.situation, decided.choice.decision
        intake, question = read.intake, read.question
        everyone = situation.everyone
        record = RequestRecord(
            **self._known(intake),
            expected_t=situation.t,
            features=read.features,
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
            encode_seconds=None if read.features is None else read.encode_seconds,
            # The journal would drop it too, but by copying a record of fifty fields.
            prompt=intake.request.conversation.text if self._settings.store_text else None,
            surface=question.prompt.surface,
            surface_version=VERSION,
            is_within_reach=decision.is_within_reach,
            label_probability=decided.bought,
            gated=Gated(question.candidates, read.admission.why) if question.is_gated else None,
            place=None if standing is None else standing.logged(decided.reason),
            is_alone=question.is_alone,
        )
        return record if decided.dropped is None else _unclaimed(record, decided.pin)

    def _known(self, intake: Intake) -> dict[str, Any]:
        zoo = intake.zoo
        return {
            "request_id": intake.request_id,
            "created_at": datetime.now(UTC),
            "zoo": zoo.name,
            "service_level": intake.level.name,
            "alpha": intake.level.alpha,
            "policy": zoo.settings.policy,
            "asker": asker_of(intake.request),
            "encoder": intake.engine.encoder.name,
            "trial": intake.trial,
            "names": names_of(intake.request.metadata, are_kept=self._settings.store_identities),
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
            sample_probability=decided.read.intake.zoo.settings.watch.sample if called else None,
        ),
    )


@dataclass(eq=False, repr=False)
class RequestDecider:
    """The decider of requests: it reads each, decides it, draws whether labels of its answers are
    bought, and drops a decision that came too late."""

    settings: MessplusSettings
    reader: RequestReader
    holds: Holds
    buyers: Mapping[str, Buyer]
    counters: Counters

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.settings)

    async def decide(self, intake: Intake) -> DecidedRequest:
        """Read and decide a request. Only a routed request has a place in a conversation, and only
        a routed one can be decided too late."""
        started = time.perf_counter()
        engine, request, deployments = intake.engine, intake.request, intake.deployments
        read = await self.reader.read(intake)
        is_routed, standing = intake.trial.arm is Arm.ROUTED, None
        if is_routed:
            standing = self.holds.standing(
                request, read.question, intake.zoo.name, deployments, read.admission.barred
            )
        if standing is not None:
            read = replace(read, question=standing.question)
        held = None if standing is None else standing.choose(engine)
        choice, bought = self._choose(engine, read) if held is None else (held, None)
        seconds = time.perf_counter() - started
        is_late = is_routed and self._is_late(engine, read, seconds)
        dropped = self._dropped(engine, read, deployments, is_late=is_late)
        pin = None if standing is None else standing.pin if is_late else standing.followed(choice)
        return DecidedRequest(read, choice, seconds, dropped, bought, standing, pin)

    def _choose(self, engine: Engine, read: ReadRequest) -> tuple[Choice, float | None]:
        """Decide, and draw whether labels of the answers are bought; return the probability too."""
        buyer = self.buyers.get(engine.zoo.name)
        if buyer is None:
            return engine.decide(read.question), None
        bought: float | None = None

        def labelled(situation: Situation) -> bool | None:
            nonlocal bought
            bought, is_labelled = buyer.purchase(
                engine, read.question, read.intake.request, situation
            )
            return is_labelled

        choice = engine.decide(read.question, labelled)
        if bought is not None:
            decision = buyer.with_comparison(choice.decision, choice.situation)
            choice = replace(choice, decision=decision)
        return choice, bought

    def _is_late(self, engine: Engine, read: ReadRequest, seconds: float) -> bool:
        """Tell whether a decision took longer than the operator allows, and count it."""
        # The wait for a slow encoder is over: dropping the decision would save none of it.
        waited = 0.0 if engine.encoder.is_fast else read.encode_seconds
        is_late = seconds - waited > self.settings.deadline_seconds
        if is_late:
            self.counters.failure("deadlines_missed", f"a decision took {seconds * 1000:.1f} ms")
        return is_late

    def _dropped(
        self, engine: Engine, read: ReadRequest, deployments: Sequence[Deployment], *, is_late: bool
    ) -> Reason | None:
        """Return why a decision is not followed, None if it is. If it is not, no satisfaction is
        expected of it, and nothing is paid for its labels."""
        if deployments and not is_late:
            return None
        engine.expect_nothing(read.question.request_id)
        buyer = self.buyers.get(engine.zoo.name)
        if buyer is not None:
            buyer.give_back(read.question.request_id, read.intake.request.key_hash)
        return Reason.DEADLINE_MISSED if deployments else Reason.NONE_HEALTHY
