"""A second answer in place of the first: another model is called where the first answer looks bad.

LiteLLM's hook after a successful call may return another response. There the answer is read, and
kept unless the engine names a candidate that is worth its call. Whatever fails, the client gets the
first answer; it always gets one answer, with its own usage. Left alone are answers that others have
seen before: streamed ones, those of a cache, and those that a guardrail has passed.
"""

import asyncio
import contextvars
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from litellm_messplus.core.answer import AnswerReading
from litellm_messplus.records import served_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.ends import CallEnd, CallSink
from litellm_messplus.serving.litellm_seam import hidden_params, timeout_of
from litellm_messplus.serving.open_requests import First, OpenRequest, OpenRequests, Second
from litellm_messplus.serving.repeating import OwnCall, called, repeated
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import SURFACES, Surface
from litellm_messplus.settings.promise import SecondAnswer
from litellm_messplus.settings.schema import ZooSettings

ORIGIN = "messplus_second_answer"
"""The origin by which LiteLLM's logs distinguish the call: the caller's key pays for it."""


def first_of(group: str, request: IncomingRequest) -> First:
    """Return what the answer to a request of a zoo is to be read with."""
    seconds = timeout_of(request.kwargs)
    until = None if seconds is None else asyncio.get_running_loop().time() + seconds
    arguments = repeated(group, request, request.metadata, ORIGIN)
    return First(arguments, until)


@dataclass(eq=False, repr=False)
class SecondAnswers:
    """The caller of second answers of one worker. It ``is_on`` if any zoo replaces answers."""

    zoos: Mapping[str, ZooSettings]
    open_requests: OpenRequests
    index: DeploymentIndex
    sink: CallSink
    counters: Counters

    def __post_init__(self) -> None:
        self.is_on = any(zoo.second_answer is SecondAnswer.AUTO for zoo in self.zoos.values())

    async def in_place_of(self, data: Mapping[str, Any], response: object) -> object | None:
        """Return the response that the client gets in place of this one; None to keep it."""
        opened = self.open_requests.of_hook(data, data)
        if opened is None or opened.first is None:
            return None
        first, opened.first = opened.first, None
        surface = SURFACES[opened.record.asker.call_type]
        if answers.is_repeated(data, response):
            return None
        looks = surface.looks(response)
        opened.looks = await self.sink.scores.scored(opened.scored, surface, response, looks)
        opened.reading = reading = await self._read(opened, surface, response)
        if reading is None or reading.goes_on_to is None:
            return None
        end = await self._ask(opened, first, surface, reading.goes_on_to)
        return None if end is None else self._replace(opened, response, end)

    async def _read(
        self, opened: OpenRequest, surface: Surface, response: object
    ) -> AnswerReading | None:
        """Read the answer; None for one that calls a tool, or that another candidate gave than the
        chosen one."""
        if opened.looks is None or surface.read_answer(response).tool_calls:
            return None
        deployment = hidden_params(response).get("model_id")
        if self.index.candidate(opened.record.zoo, deployment) != opened.record.chosen:
            return None
        return await self.sink.road.read(opened.record.request_id, opened.looks)

    async def _ask(
        self, opened: OpenRequest, first: First, surface: Surface, candidate: str
    ) -> CallEnd | None:
        """Call another candidate; None if it fails, or the client's time is up before."""
        call = OwnCall(
            served_call_id(opened.record.request_id), CallRole.SERVED, candidate, surface
        )
        started = time.perf_counter()
        left = None if first.until is None else first.until - asyncio.get_running_loop().time()
        # A fresh context: nothing of the first call may leak into the second.
        asking = asyncio.get_running_loop().create_task(
            called(call, first.arguments, opened.barred), context=contextvars.Context()
        )
        try:
            response: object = await asyncio.wait_for(asking, left)
        except Exception:
            self.counters.failure("second_answers_failed", f"a second answer of {candidate} failed")
            return None
        end = call.answered(response, time.perf_counter() - started)
        return None if end.failure else await self.sink.read(opened, end)

    def _replace(self, opened: OpenRequest, replaced: object, end: CallEnd) -> object | None:
        """Note that the client gets the answer of this call, which is returned."""
        log = partial(self.sink.ended, opened, end)
        opened.second = Second(end.author, replaced, log)
        self.counters.add("second_answers")
        return None if end.answer is None else end.answer.response
