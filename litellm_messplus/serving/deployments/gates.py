"""Gates: which healthy deployments can take a request, checked before the candidates are ranked.

Images, tools and the like are checked against a deployment's stated capabilities and its past
refusals; its region and its context window are compared; where LiteLLM filters by tags, its own
filter decides. If the check itself fails, the failure is counted, and the largest healthy candidate
serves, as it can take the most.
"""

import asyncio
import json
import marshal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import litellm

from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.routing.held import FAILED, Answer, all_of, fits, passing
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.serving.deployments.capabilities import (
    KEYS,
    REFUSALS,
    Capabilities,
    Refusals,
    Stated,
)
from litellm_messplus.serving.deployments.deployment import (
    GROUPS,
    Deployment,
    Group,
    candidate_of,
    deployment_id,
    group,
    place_of,
)
from litellm_messplus.serving.litellm_seam import (
    checks_before_calls,
    counted_tokens,
    filters_by_tags,
    kept_by_tags,
    may_filter_by_tags,
    name_tags,
    running_router,
)
from litellm_messplus.serving.surfaces.parameters import contradicted, contradicting
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.requirements import (
    MODALITIES,
    Capability,
    Requirements,
    read_requirements,
)
from litellm_messplus.settings.zoo import Zoo

TOKENS_A_TURN = 64
"""Most tokens of a message in addition to its words: role, name, ids of tool calls."""
TOKENS_ATTACHED = 1600
"""Most tokens of an image at the public providers; unknown for sound and files."""
REFUSED = frozenset({400, 422})
"""HTTP statuses of endpoints for requests that they cannot take."""
OF_ITS_OWN = (litellm.ContextWindowExceededError, litellm.ContentPolicyViolationError)
"""Refusals that state their own cause, so no capability is to blame."""


@dataclass(slots=True)
class Needs:
    """The needs of a request, kept for its further attempts. ``most_tokens`` is an upper bound on
    its prompt's tokens, ``tokens`` the exact count, if one was needed."""

    requirements: Requirements
    most_tokens: int
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """The outcome of the gates. ``barred`` are the ids of the deployments that are ranked last,
    ``eligible`` the candidates that have another one, None if all have; ``why`` names the needs
    that decided."""

    barred: frozenset[str] = frozenset()
    eligible: frozenset[str] | None = None
    why: tuple[str, ...] = ()

    def without(
        self, left_out: frozenset[str], why: tuple[str, ...], deployments: Sequence[Deployment]
    ) -> "Admission":
        """Leave out the deployments of these candidates too, for these reasons."""
        barred = self.barred | of_candidates(deployments, left_out)
        eligible = group(deployments).candidates if self.eligible is None else self.eligible
        return Admission(barred, eligible - left_out, (*self.why, *why))


def of_candidates(deployments: Sequence[Deployment], candidates: Collection[str]) -> frozenset[str]:
    """Return the ids of the deployments of these candidates."""
    return frozenset(
        each.identity for each in group(deployments).members if each.candidate in candidates
    )


OPEN = Admission()
"""Admission of every deployment."""


@dataclass(eq=False, repr=False)
class Gates:
    """One worker's gates. ``count_seconds`` limits the wait of a request for its token count."""

    counters: Counters
    _: KW_ONLY
    count_seconds: float
    router: Callable[[], Any] = running_router

    def __post_init__(self) -> None:
        self._capabilities = Capabilities()
        self._refusals = Refusals()
        self._narrow: dict[Group, Narrow] = {}

    def needs(self, request: IncomingRequest) -> Needs:
        """Read the needs of a request."""
        return Needs(read_requirements(request), _most_tokens(request))

    async def admit(
        self,
        zoo: Zoo,
        request: IncomingRequest,
        needs: Needs | None,
        deployments: Sequence[Deployment],
        tried: Collection[str] = (),
    ) -> Admission:
        """Check every healthy deployment of a group; a zoo without gates has no ``needs``, and all
        of its deployments pass. ``tried`` are the ids of those that have failed this request."""
        if needs is None or len(deployments) < 2:
            return OPEN
        try:
            if self._takes_all(request, needs, deployments):
                return OPEN
            return await self._admit(request, needs, deployments)
        except Exception:
            self.counters.failure(
                "gate_failures", "what the models can take is unknown: the largest serves"
            )
            return _largest_alone(zoo, deployments, tried)

    def failed(self, identity: object, error: object, needs: Needs | None) -> None:
        """Learn from a call to the deployment of that id that ended without an answer."""
        known = self._capabilities.known(str(identity))
        is_refusal = getattr(error, "status_code", None) in REFUSED
        if needs is None or known is None or not is_refusal or isinstance(error, OF_ITS_OWN):
            return
        deployment, stated = known
        unstated = needs.requirements.capabilities - stated.own.keys()
        for capability in self._refusals.refused(str(identity), unstated, time.monotonic()):
            self.counters.add("capabilities_refused")
            logger.warning(
                "%s refused %d requests with %s in a row, and gets none for an hour: write "
                "`model_info: {%s: false}` where it cannot take them, `true` where it can",
                place_of(deployment),
                REFUSALS,
                capability,
                KEYS[capability][0],
            )

    def succeeded(self, identity: object, needs: Needs | None) -> None:
        """Learn from a call that was answered."""
        if needs is not None and needs.requirements.capabilities:
            self._refusals.succeeded(str(identity), needs.requirements.capabilities)

    async def answers(
        self, request: IncomingRequest, needs: Needs, deployments: Sequence[Deployment]
    ) -> dict[str, dict[str, Answer]]:
        """Return the answer of each deployment to each need of the request, by deployment id."""
        router = self.router()
        stated = [self._capabilities.of(deployment, router) for deployment in deployments]
        tokens = await self._tokens(request, needs, stated, router)
        tagged = await _tagged(request, deployments, router)
        found = {}
        for deployment, known in zip(deployments, stated, strict=True):
            identity = deployment_id(deployment)
            gates = dict(self._answers(identity, known, needs.requirements, tokens))
            gates["tags"] = Answer.YES if id(deployment) in tagged else Answer.NO
            found[identity] = gates
        return found

    def _takes_all(
        self, request: IncomingRequest, needs: Needs, deployments: Sequence[Deployment]
    ) -> bool:
        """Return whether every deployment takes the request, as for most requests, which then skip
        the check of each."""
        if not needs.requirements.are_words_alone:
            return False
        router, shown = self.router(), group(deployments)
        narrow = self._narrow.get(shown)
        if narrow is None:
            if len(self._narrow) >= GROUPS:
                self._narrow.clear()
            stated = [self._capabilities.of(each, router) for each in deployments]
            narrow = self._narrow[shown] = _narrow(deployments, stated)
        if narrow.is_tagged or filters_by_tags(router, request.kwargs):
            return False
        if not narrow.arms.isdisjoint(needs.requirements.sets):
            return False
        return not narrow.stated or _fit(needs, narrow.stated)

    async def _admit(
        self, request: IncomingRequest, needs: Needs, deployments: Sequence[Deployment]
    ) -> Admission:
        gates = await self.answers(request, needs, deployments)
        answers = {identity: all_of(each.values()) for identity, each in gates.items()}
        admitted = passing(answers)
        if admitted is None:
            if Answer.NO in answers.values():
                self.counters.add("none_eligible")
            return OPEN
        barred = frozenset(answers) - admitted
        why = {name for each in barred for name, answer in gates[each].items() if not answer}
        unsure = {name for each in barred for name in gates[each] if gates[each][name] < Answer.YES}
        return Admission(barred, _eligible(deployments, admitted), tuple(sorted(why or unsure)))

    def _answers(
        self, identity: str, stated: Stated, required: Requirements, tokens: float
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the answers of one deployment, each with the name of the need."""
        now = time.monotonic()
        for capability in required.capabilities:
            yield capability.value, self._can_take(identity, stated, capability, now)
        if required.region is not None:
            yield "region", Answer.YES if stated.region == required.region else Answer.NO
        if required.has_answer_format and not stated.takes_answer_format:
            yield "response_format", Answer.YES if litellm.drop_params else Answer.NO
        yield "context", fits(tokens, required.answer_tokens, stated.window)
        for name in contradicted(stated.arm, required.sets):
            yield name, Answer.NO

    def _can_take(
        self, identity: str, stated: Stated, capability: Capability, now: float
    ) -> Answer:
        """Return what the operator states, else a refusal by the endpoint, else what the price map
        states. An unknown modality is tried only if no deployment is known to take it, any other
        unknown at once."""
        own = stated.own.get(capability)
        if own is not None:
            return own
        if self._refusals.denies(identity, capability, now):
            return Answer.NO
        otherwise = Answer.UNKNOWN if capability in MODALITIES else Answer.YES
        return stated.mapped.get(capability, otherwise)

    async def _tokens(
        self, request: IncomingRequest, needs: Needs, stated: Sequence[Stated], router: Any
    ) -> float:
        """Return the upper bound on the prompt's tokens if it fits everywhere; else count them as
        LiteLLM does, in a thread."""
        if needs.tokens is not None:
            return needs.tokens
        if _fit(needs, stated):
            return needs.most_tokens
        has_attachments = not MODALITIES.isdisjoint(needs.requirements.capabilities)
        if has_attachments and not checks_before_calls(router):  # counting would fetch them
            return needs.most_tokens / CHARACTERS_PER_TOKEN
        try:
            async with asyncio.timeout(self.count_seconds):
                needs.tokens = await asyncio.to_thread(
                    counted_tokens, router, request.messages, request.kwargs
                )
        except Exception:  # clients may send what cannot be counted
            self.counters.add("prompts_uncounted")
            return needs.most_tokens / CHARACTERS_PER_TOKEN
        return needs.tokens


class Narrow(NamedTuple):
    """The deployments that keep requests of words alone from a group: those of the narrowest
    context window, none if none is stated, whether any has a filter by tags of its own, and the
    parameters by which a request may contradict an arm."""

    stated: Sequence[Stated]
    is_tagged: bool
    arms: frozenset[str]


def _narrow(deployments: Sequence[Deployment], stated: Sequence[Stated]) -> Narrow:
    windows = [each for each in stated if each.window is not None]
    narrowest = sorted(windows, key=lambda each: each.window or 0)[:1]
    arms = frozenset[str]().union(*(contradicting(each.arm) for each in stated))
    return Narrow(narrowest, name_tags(deployments), arms)


def _fit(needs: Needs, stated: Sequence[Stated]) -> bool:
    """Return whether the upper bound on the prompt's tokens fits every context window."""
    answer_tokens = needs.requirements.answer_tokens
    return all(fits(needs.most_tokens, answer_tokens, each.window) is Answer.YES for each in stated)


def _largest_alone(
    zoo: Zoo, deployments: Sequence[Deployment], tried: Collection[str]
) -> Admission:
    """Return the admission of the largest healthy candidate that has not failed this request."""
    left = [each for each in deployments if deployment_id(each) not in tried] or deployments
    largest = zoo.largest_of(candidate_of(each) for each in left)
    admitted = frozenset(deployment_id(each) for each in left if candidate_of(each) == largest)
    barred = frozenset(map(deployment_id, deployments)) - admitted
    return Admission(barred, _eligible(deployments, admitted), (FAILED,))


def _eligible(deployments: Sequence[Deployment], admitted: frozenset[str]) -> frozenset[str] | None:
    """Return the candidates with a deployment that is admitted; None if all have one."""
    everyone = {candidate_of(each) for each in deployments}
    found = {candidate_of(each) for each in deployments if deployment_id(each) in admitted}
    return None if found == everyone else frozenset(found)


def _most_tokens(request: IncomingRequest) -> int:
    """Return an upper bound on a prompt's tokens: each has a byte or more."""
    conversation = request.conversation
    text = conversation.text
    words = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if request.plain is not None:
        return words + TOKENS_A_TURN * (len(conversation.turns) + 1)
    given = (request.kwargs.get(name) for name in request.surface.tools)
    described = sum(_bytes_of(tools) for tools in given if tools)
    attached = TOKENS_ATTACHED * (conversation.images + conversation.attachments)
    return words + described + attached + TOKENS_A_TURN * (len(conversation.turns) + 1)


def _bytes_of(tools: Any) -> int:
    """Return an upper bound on the bytes of tools, in a fifth of the time that JSON takes."""
    try:
        return len(marshal.dumps(tools, 2))  # version 2 writes what is repeated each time
    except ValueError:  # it holds a value that no client can have sent
        return len(json.dumps(tools, default=str))


async def _tagged(
    request: IncomingRequest, deployments: Sequence[Deployment], router: Any
) -> set[int]:
    """Return the deployments that LiteLLM's filter by tags keeps: all if it is off. If it refuses
    the request, all are kept here: it will refuse again after us, in its own words."""
    if not may_filter_by_tags(router, deployments, request.kwargs):
        return set(map(id, deployments))
    try:
        kept = await kept_by_tags(router, deployments, request.kwargs)
    except ValueError:
        kept = deployments
    return {id(deployment) for deployment in kept}
