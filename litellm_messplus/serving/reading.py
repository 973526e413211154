"""Reading of a request: LiteLLM's arguments as the plain data that the brain decides by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litellm_messplus.brain.messages import Asked
from litellm_messplus.core.hold import Signs
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.deployment import Deployment, group
from litellm_messplus.serving.litellm_seam import may_replace_answers
from litellm_messplus.serving.surfaces.answers import plain_response_id
from litellm_messplus.serving.surfaces.identity import (
    asker_of,
    ids_in,
    names_of,
    session_named,
    wanted_level,
)
from litellm_messplus.serving.surfaces.request import IncomingRequest, may_act, may_wait
from litellm_messplus.serving.surfaces.signs import read_signs


@dataclass(eq=False, repr=False)
class RequestReader:
    """The reader of requests. What only conversations need is read where they are held."""

    holds: Callable[[str], bool]
    counters: Counters
    keeps_names: bool

    def read(
        self,
        request_id: str,
        zoo: str,
        request: IncomingRequest,
        deployments: Sequence[Deployment],
    ) -> Asked:
        """Read a request to one of the healthy deployments.

        Raises RefusedError for a switch that the client wrote wrongly."""
        given, conversation = request.kwargs, request.conversation
        metadata, earlier = request.client_metadata, request.continues
        signs, ids = Signs(), tuple[str, ...]()
        if self.holds(zoo):
            try:
                signs = read_signs(request)
                ids = () if request.plain is not None else ids_in(request.prompt)
            except Exception:  # a prompt may be nested too deeply
                self.counters.failure("identity_failures", "a request was read as if it were alone")
        return Asked(
            request_id,
            zoo,
            asker_of(request),
            conversation,
            group(deployments).replicas,
            wanted_level(request),
            names_of(request.metadata, are_kept=self.keeps_names),
            request.is_switched_off,
            may_act(request),
            may_wait(request) and may_replace_answers(),
            request.most_completion_tokens,
            signs,
            session_named(metadata, given),
            ids,
            None if earlier is None else plain_response_id(earlier),
            {name: given[name] for name in request.surface.parameters if given.get(name)},
            metadata,
        )
