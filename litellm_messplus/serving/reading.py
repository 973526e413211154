"""Reading of a request before it is decided: its promise, its text, and its features in time."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.encoders.batcher import Encoding
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.serving.deployments.deployment import Deployment, group
from litellm_messplus.serving.deployments.gates import Admission, Gates, Needs
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.deployments.rules import kept_within, rule_of
from litellm_messplus.serving.litellm_seam import may_replace_answers
from litellm_messplus.serving.surfaces.asking import Granted
from litellm_messplus.serving.surfaces.request import IncomingRequest, may_act, may_wait
from litellm_messplus.settings.promise import SecondAnswer, ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import Arm, Trial

# The promise that a request counts towards: its key's, else its team's, else the zoo's own.

NAME_KEY = "messplus_service_level"


def service_level(zoo: Zoo, metadata: Mapping[str, Any], counters: Counters) -> ServiceLevel:
    """Find the level that the key's or team's metadata names; count and log an unknown name.

    Only the operator's metadata of the key or the team counts, never what the client sends.
    """
    name = _named(metadata.get("user_api_key_metadata")) or _named(
        metadata.get("user_api_key_team_metadata")
    )
    if name is None:
        return zoo.levels[DEFAULT_LEVEL]
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def _named(metadata: object) -> str | None:
    found = metadata.get(NAME_KEY) if metadata and isinstance(metadata, Mapping) else None
    return None if found is None else str(found)


# Reading a request while it waits.

NONE = frozenset[str]()
FEATURES_SHARE = 0.8
"""Share of the deadline spent waiting for features. The rest is for a busy event loop, and for the
decision."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A request before it is read: the healthy ``deployments``, the promise that it counts
    towards, its arm, and what it was granted of what it asked for."""

    engine: Engine
    deployments: Sequence[Deployment]
    request: IncomingRequest
    request_id: str
    level: ServiceLevel
    trial: Trial
    granted: Granted

    @property
    def zoo(self) -> Zoo:
        return self.engine.zoo


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request, and its question to the engine; ``encoding`` is None if its features did not come
    in time, and ``encode_seconds`` the time waited for them. ``needs`` is what the gates require,
    None in a zoo without gates, and ``admission`` their result. ``left_out`` are candidates that
    could take it, and would exceed a limit that it was granted."""

    intake: Intake
    question: Question
    encoding: Encoding | None
    encode_seconds: float
    needs: Needs | None
    admission: Admission
    left_out: frozenset[str] = NONE

    @property
    def features(self) -> Features | None:
        return None if self.encoding is None else self.encoding.features


def may_go_on(intake: Intake) -> bool:
    """Tell whether the answer to a request may be replaced by a second one."""
    settings = intake.zoo.settings
    return (
        settings.second_answer is SecondAnswer.AUTO
        and intake.trial.arm is Arm.ROUTED
        and intake.level.p95_seconds is None
        and not intake.granted.limits
        and not settings.counts_conversations
        and may_wait(intake.request)
        and not may_act(intake.request)
        and may_replace_answers()
    )


@dataclass(eq=False, repr=False)
class RequestReader:
    """A reader that waits for features until the decision is nearly due, then goes without."""

    features: FeatureService
    prompt_tokens: PromptTokens
    gates: Gates
    counters: Counters
    _: KW_ONLY
    deadline_seconds: float

    async def read(self, intake: Intake) -> ReadRequest:
        """Read a request. Any candidate with a healthy deployment that can take it may serve it;
        if there are none, all may, since a retry may find a deployment after all.

        Raises RefusedError."""
        zoo, request, deployments = intake.zoo, intake.request, intake.deployments
        waiting = time.perf_counter()
        conversation = request.conversation
        length = len(conversation.text)
        allowed = FEATURES_SHARE * self.deadline_seconds
        encoding = await self.features.features(conversation, allowed)
        encode_seconds = time.perf_counter() - waiting
        needs = self.gates.needs(request) if zoo.settings.gates else None
        admission = await self.gates.admit(zoo, request, needs, deployments)
        there = frozenset(zoo.present)
        able = there & (admission.eligible or NONE) or there & group(deployments).candidates
        question = Question(
            intake.request_id,
            intake.level,
            Prompt(None if encoding is None else encoding.features, read_surface(conversation)),
            length,
            tuple([name for name in zoo.present if name in able or not able]),
            request.most_completion_tokens,
            self.prompt_tokens.count(zoo.name, conversation),
            is_gated=admission.eligible is not None,
            at=time.time(),
            is_alone=may_act(request),
            may_go_on=may_go_on(intake),
        )
        narrowed, why = self._narrowed(intake, question)
        left_out = frozenset(question.candidates) - frozenset(narrowed.candidates)
        if left_out:
            admission = admission.without(left_out, why, deployments)
        return ReadRequest(intake, narrowed, encoding, encode_seconds, needs, admission, left_out)

    def _narrowed(self, intake: Intake, question: Question) -> tuple[Question, tuple[str, ...]]:
        """Leave out the candidates that a rule of the zoo or a granted limit leaves out; return
        why, too. Raises RefusedError."""
        candidates, why = question.candidates, tuple[str, ...]()
        rule = rule_of(intake.zoo, intake.request)
        if rule is not None:
            left = tuple(each for each in candidates if each in rule.candidates)
            if not left:
                self.counters.add("rules_unmet")
            elif len(left) < len(candidates):
                question, why = replace(question, candidates=left, is_gated=True), (rule.words,)
        kept, exceeded = kept_within(intake.engine, question, intake.granted.limits, self.counters)
        if exceeded:
            question = replace(question, candidates=kept, is_gated=True)
        return question, (*why, *exceeded)
