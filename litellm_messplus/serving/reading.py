"""Reading of a request before it is decided: its promise, its text, and its features in time."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from litellm_messplus.runtime.vocabulary import level_asked
from litellm_messplus.serving.deployments.deployment import Deployment, group
from litellm_messplus.serving.deployments.gates import Admission, Gates, Needs
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.deployments.rules import kept_within, rule_of
from litellm_messplus.serving.litellm_seam import may_replace_answers, request_headers
from litellm_messplus.serving.surfaces.request import IncomingRequest, may_act, may_wait
from litellm_messplus.settings.promise import SecondAnswer, ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL, LIMITS_ASKED
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.rows import storable
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


# What a request asks for by header or metadata, and what it is granted.
#
# The operator says who may ask for what. What was granted anything counts towards a stream of its
# own (`gold:asked`), with the promise of its level: so no caller moves what the keys of a level are
# promised.

LEVEL = "service_level"
ASKED = (LEVEL, *LIMITS_ASKED)
METADATA = {name: f"messplus_{name}" for name in ASKED}
"""The keys in a request's metadata."""
HEADERS = {name: f"x-messplus-{name.replace('_', '-')}" for name in ASKED}
"""The headers, which come before the metadata."""
MAY_KEY = "messplus_callers_may"
"""The key in the metadata of a key or team, in place of the zoo's `callers_may`."""
LONGEST = 64
"""Most characters that are kept of what a caller asks for."""
MOST = 1e15
"""Largest number that is kept as one."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The promise that a request counts towards, and the ``limits`` that it was granted: the most
    that it may be expected to cost, in the zoo's unit, and to take, in seconds. ``asked`` and
    ``granted`` are as logged; None if it asked for nothing."""

    level: ServiceLevel
    limits: Mapping[str, float] = field(default_factory=dict)
    asked: dict[str, Any] | None = None
    granted: dict[str, Any] | None = None


def grant(zoo: Zoo, own: ServiceLevel, request: IncomingRequest, counters: Counters) -> Granted:
    """Give a request of a key whose level is ``own`` what it asks for and may have; count it if
    that is not all."""
    asked = _asked(request)
    if not asked:
        return Granted(own)
    may, granted = _may(zoo, request.metadata), dict[str, Any]()
    if asked.get(LEVEL) in may and asked[LEVEL] in zoo.levels:
        granted[LEVEL] = asked[LEVEL]
    for name in LIMITS_ASKED:
        limit = _positive(asked.get(name))
        if limit is not None and name in may:
            granted[name] = limit
    if len(granted) < len(asked):
        counters.add("asked_in_vain")
    level = granted.get(LEVEL, own.name)
    limits = {name: granted[name] for name in LIMITS_ASKED if name in granted}
    is_as_ever = level == own.name and not limits
    return Granted(own if is_as_ever else zoo.streams[level_asked(level)], limits, asked, granted)


def _asked(request: IncomingRequest) -> dict[str, Any]:
    """Read what a request asks for: text of a bounded length, and numbers."""
    headers, metadata = request_headers(request.metadata), request.client_metadata
    found = {name: headers.get(HEADERS[name], metadata.get(METADATA[name])) for name in ASKED}
    return {name: _logged(value) for name, value in found.items() if value is not None}


def _logged(value: object) -> Any:
    """Return a number as it is, and anything else as text of a bounded length."""
    if isinstance(value, int | float) and abs(value) < MOST:
        return value
    text = str(value)
    return storable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")


def _may(zoo: Zoo, metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return what the key may ask for: by its own metadata, else its team's, else by the zoo. A
    promise that counts whole conversations has no choice by request."""
    if zoo.settings.counts_conversations:
        return frozenset()
    for whose in ("user_api_key_metadata", "user_api_key_team_metadata"):
        given = metadata.get(whose)
        stated = given.get(MAY_KEY) if isinstance(given, Mapping) else None
        if isinstance(stated, list | tuple):
            return frozenset(map(str, stated))
    return frozenset(zoo.settings.callers_may)


def _positive(value: object) -> float | None:
    """Read a number above zero; None for anything else that a client may send."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if 0.0 < found < math.inf else None


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


class RequestReader:
    """A reader that waits for features until the decision is nearly due, then goes without."""

    def __init__(
        self,
        features: FeatureService,
        prompt_tokens: PromptTokens,
        gates: Gates,
        counters: Counters,
        *,
        deadline_seconds: float,
    ) -> None:
        self._counters = counters
        self._features = features
        self._prompt_tokens = prompt_tokens
        self._gates = gates
        self._deadline_seconds = deadline_seconds

    async def read(self, intake: Intake) -> ReadRequest:
        """Read a request. Any candidate with a healthy deployment that can take it may serve it;
        if there are none, all may, since a retry may find a deployment after all.

        Raises UnmetError."""
        zoo, request, deployments = intake.zoo, intake.request, intake.deployments
        waiting = time.perf_counter()
        conversation = request.conversation
        length = len(conversation.text)
        allowed = FEATURES_SHARE * self._deadline_seconds
        encoding = await self._features.features(conversation, allowed)
        encode_seconds = time.perf_counter() - waiting
        needs = self._gates.needs(request) if zoo.settings.gates else None
        admission = await self._gates.admit(zoo, request, needs, deployments)
        there = frozenset(zoo.present)
        able = there & (admission.eligible or NONE) or there & group(deployments).candidates
        question = Question(
            intake.request_id,
            intake.level,
            Prompt(None if encoding is None else encoding.features, read_surface(conversation)),
            length,
            tuple([name for name in zoo.present if name in able or not able]),
            request.most_completion_tokens,
            self._prompt_tokens.count(zoo.name, conversation),
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
        why, too. Raises UnmetError."""
        candidates, why = question.candidates, tuple[str, ...]()
        rule = rule_of(intake.zoo, intake.request)
        if rule is not None:
            left = tuple(each for each in candidates if each in rule.candidates)
            if not left:
                self._counters.add("rules_unmet")
            elif len(left) < len(candidates):
                question, why = replace(question, candidates=left, is_gated=True), (rule.words,)
        kept, exceeded = kept_within(intake.engine, question, intake.granted.limits, self._counters)
        if exceeded:
            question = replace(question, candidates=kept, is_gated=True)
        return question, (*why, *exceeded)
