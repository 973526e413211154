"""Gates: which healthy deployments can take a request, checked before the choice.

Images, tools and the like are looked up in one table of needs; its region and its context window
are compared; where LiteLLM filters by tags, its own filter decides. If the check itself fails, the
failure is counted, and the largest healthy candidate serves, as it can take the most.
"""

import asyncio
import json
import marshal
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import litellm

from litellm_messplus.brain.messages import OPEN, Admission
from litellm_messplus.core.held import FAILED
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.capabilities import (
    MODALITIES,
    Answer,
    Capabilities,
    Known,
    all_of,
    fits,
    passing,
)
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    candidate_of,
    deployment_id,
)
from litellm_messplus.serving.litellm_seam import (
    checks_before_calls,
    counted_tokens,
    kept_by_tags,
    may_filter_by_tags,
    running_router,
)
from litellm_messplus.serving.surfaces.parameters import contradicted
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.requirements import Requirements, read_requirements
from litellm_messplus.settings.zoo import Zoo

TOKENS_A_TURN = 64
"""Most tokens of a message in addition to its words: role, name, ids of tool calls."""
TOKENS_ATTACHED = 1600
"""Most tokens of an image at the public providers; unknown for sound and files."""


@dataclass(slots=True)
class Needs:
    """The needs of a request, kept for its further attempts. ``most_tokens`` is an upper bound on
    its prompt's tokens, ``tokens`` the exact count, if one was needed."""

    requirements: Requirements
    most_tokens: int
    tokens: int | None = None


OF_LITELLM = ("context", "region", "response_format")
"""The needs that LiteLLM checks too, before a call, if it is told to."""


@dataclass(eq=False, repr=False)
class Gates:
    """One worker's gates. ``count_seconds`` limits the wait of a request for its token count."""

    counters: Counters
    _: KW_ONLY
    count_seconds: float
    router: Callable[[], Any] = running_router

    def __post_init__(self) -> None:
        self._capabilities = Capabilities()

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
        of its deployments pass that LiteLLM will keep. ``tried`` are the ids of those that have
        failed this request."""
        if len(deployments) < 2:
            return OPEN
        try:
            if needs is None:
                barred = await self.removed(request, deployments)
                kept = frozenset(map(deployment_id, deployments)) - barred
                return Admission(barred, _eligible(deployments, kept)) if barred else OPEN
            return await self._admit(request, needs, deployments)
        except Exception:
            self.counters.failure(
                "gate_failures", "what the models can take is unknown: the largest serves"
            )
            return _largest_alone(zoo, deployments, tried)

    async def removed(
        self, request: IncomingRequest, deployments: Sequence[Deployment]
    ) -> frozenset[str]:
        """Return the ids of the deployments that LiteLLM's own filters would remove, which run
        after ours, and raise if they remove all that is left to them; none if they remove all."""
        router = self.router()
        if router is None:
            return frozenset()
        filters = set(OF_LITELLM if checks_before_calls(router) else ())
        if may_filter_by_tags(router, deployments, request.kwargs):
            filters.add("tags")
        if not filters:
            return frozenset()
        answers = await self.answers(request, self.needs(request), deployments)
        found = frozenset(
            identity
            for identity, gates in answers.items()
            if any(not answer and name in filters for name, answer in gates.items())
        )
        return found if len(found) < len(answers) else frozenset()

    async def answers(
        self, request: IncomingRequest, needs: Needs, deployments: Sequence[Deployment]
    ) -> dict[str, dict[str, Answer]]:
        """Return the answer of each deployment to each need of the request, by deployment id."""
        router = self.router()
        known = [self._capabilities.of(deployment, router) for deployment in deployments]
        tokens = await self._tokens(request, needs, known, router)
        tagged = await _tagged(request, deployments, router)
        found = {}
        for deployment, each in zip(deployments, known, strict=True):
            gates = dict(_answers(each, needs.requirements, tokens))
            gates["tags"] = Answer.YES if id(deployment) in tagged else Answer.NO
            found[deployment_id(deployment)] = gates
        return found

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

    async def _tokens(
        self, request: IncomingRequest, needs: Needs, known: Sequence[Known], router: Any
    ) -> float:
        """Return the upper bound on the prompt's tokens if it fits everywhere; else count them as
        LiteLLM does, in a thread."""
        if needs.tokens is not None:
            return needs.tokens
        if _fit(needs, known):
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


def _answers(known: Known, required: Requirements, tokens: float) -> Iterator[tuple[str, Answer]]:
    """Yield the answers of one deployment, each with the name of the need."""
    for capability in required.capabilities:
        yield capability.value, known.answers[capability]
    if required.region is not None:
        yield "region", Answer.YES if known.region == required.region else Answer.NO
    if required.has_answer_format and not known.takes_answer_format:
        yield "response_format", Answer.YES if litellm.drop_params else Answer.NO
    yield "context", fits(tokens, required.answer_tokens, known.window)
    for name in contradicted(known.arm, required.sets):
        yield name, Answer.NO


def _fit(needs: Needs, known: Sequence[Known]) -> bool:
    """Return whether the upper bound on the prompt's tokens fits every context window."""
    answer_tokens = needs.requirements.answer_tokens
    return all(fits(needs.most_tokens, answer_tokens, each.window) is Answer.YES for each in known)


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
