"""Reading of a request before it is decided: its text, and its features in time."""

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import read_surface
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.serving.deployments.deployment import Deployment, group
from litellm_messplus.serving.deployments.gates import Admission, Gates, Needs
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.litellm_seam import may_replace_answers
from litellm_messplus.serving.surfaces.request import IncomingRequest, may_act, may_wait
from litellm_messplus.settings.promise import SecondAnswer, ServiceLevel
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import Arm, Trial

NONE = frozenset[str]()
FEATURES_SHARE = 0.8
"""Share of the deadline spent waiting for features. The rest is for a busy event loop, and for the
decision."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A request before it is read: the healthy ``deployments``, the promise that it counts
    towards, and its arm."""

    engine: Engine
    deployments: Sequence[Deployment]
    request: IncomingRequest
    request_id: str
    level: ServiceLevel
    trial: Trial

    @property
    def zoo(self) -> Zoo:
        return self.engine.zoo


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request, and its question to the engine; ``features`` are None if they did not come
    in time, and ``encode_seconds`` the time waited for them. ``needs`` is what the gates require,
    None in a zoo without gates, and ``admission`` their result."""

    intake: Intake
    question: Question
    features: Features | None
    encode_seconds: float
    needs: Needs | None
    admission: Admission


def may_go_on(intake: Intake) -> bool:
    """Tell whether the answer to a request may be replaced by a second one."""
    settings = intake.zoo.settings
    return (
        settings.second_answer is SecondAnswer.AUTO
        and intake.trial.arm is Arm.ROUTED
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
    _: KW_ONLY
    deadline_seconds: float

    async def read(self, intake: Intake) -> ReadRequest:
        """Read a request. Any candidate with a healthy deployment that can take it may serve it;
        if there are none, all may, since a retry may find a deployment after all."""
        zoo, request, deployments = intake.zoo, intake.request, intake.deployments
        waiting = time.perf_counter()
        conversation = request.conversation
        length = len(conversation.text)
        allowed = FEATURES_SHARE * self.deadline_seconds
        features = await self.features.features(conversation, allowed)
        encode_seconds = time.perf_counter() - waiting
        needs = self.gates.needs(request) if zoo.settings.gates else None
        admission = await self.gates.admit(zoo, request, needs, deployments)
        there = frozenset(zoo.present)
        able = there & (admission.eligible or NONE) or there & group(deployments).candidates
        question = Question(
            intake.request_id,
            intake.level,
            Prompt(features, read_surface(conversation)),
            length,
            tuple([name for name in zoo.present if name in able or not able]),
            request.most_completion_tokens,
            self.prompt_tokens.count(zoo.name, conversation),
            is_gated=admission.eligible is not None,
            is_alone=may_act(request),
            may_go_on=may_go_on(intake),
        )
        return ReadRequest(intake, question, features, encode_seconds, needs, admission)
