"""A request repeated to another candidate, through LiteLLM's router: its arguments, and its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.serving.deployments.deployment import exploration_barred, exploration_target
from litellm_messplus.serving.deployments.metering import ReportedCall
from litellm_messplus.serving.ends import CallEnd, EndedAnswer, who_failed
from litellm_messplus.serving.litellm_seam import (
    OWN_PARAMETERS,
    hidden_params,
    internal_call_metadata,
    llm_router,
)
from litellm_messplus.serving.open_requests import Author
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import NEVER_CACHED
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import PLAIN_METADATA, Surface

NOT_REPEATED = frozenset({"stream", "stream_options", "model", "messages", "store", "background"})
"""Arguments left out of such a call: it is not streamed, and stores nothing upstream."""


def repeated(
    group: str, request: IncomingRequest, whose: Mapping[str, Any], origin: str, **more: Any
) -> dict[str, Any]:
    """Repeat the request as the filter saw it: after guardrails, before LiteLLM translates it for a
    provider. It is charged to the key in the metadata ``whose``, if any, as an internal call of
    that ``origin``; ``more`` are further arguments of LiteLLM's router."""
    found = {
        name: value
        for name, value in request.kwargs.items()
        if name not in NOT_REPEATED and not name.startswith("_") and name not in OWN_PARAMETERS
    }
    found["model"] = group
    found |= request.prompt_arguments
    found[request.surface.metadata] = internal_call_metadata(whose, origin)
    if request.surface.has_client_metadata and PLAIN_METADATA in request.kwargs:
        found[PLAIN_METADATA] = request.kwargs[PLAIN_METADATA]
    return {**found, "disable_fallbacks": True, "cache": NEVER_CACHED, **more}


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that the plugin makes to a candidate, on the surface of the request."""

    call_id: str
    role: CallRole
    candidate: str
    surface: Surface

    def answered(self, response: object, seconds: float) -> CallEnd:
        """Build its end with an answer."""
        hidden, surface = hidden_params(response), self.surface
        reading = ReportedCall(
            surface.used(response), surface.text(response), hidden.get("response_cost"), seconds
        )
        answer = EndedAnswer(response, answers.response_id(response), reading)
        return self._end(seconds, hidden.get("model_id"), answer=answer)

    def failed(self, error: Exception, seconds: float) -> CallEnd:
        """Build its end without one."""
        return self._end(seconds, None, error=error, failure=who_failed(error))

    def _end(self, seconds: float, deployment: str | None, **outcome: Any) -> CallEnd:
        author = Author(self.candidate, deployment, self.candidate)
        return CallEnd(self.call_id, self.role, author, datetime.now(UTC), seconds, **outcome)


async def called(call: OwnCall, arguments: Mapping[str, Any], barred: frozenset[str]) -> Any:
    """Call the candidate, in a context of its own; returns LiteLLM's response. Raises the errors of
    LiteLLM's router."""
    exploration_target.set(call.candidate)
    exploration_barred.set(barred)
    return await getattr(llm_router(), call.surface.router_method)(**arguments)
