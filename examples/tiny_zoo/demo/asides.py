"""Asking every model of a zoo aside: past its routing, so that nothing is logged or learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from openai import APIStatusError, OpenAI

from examples.tiny_zoo.demo.session import message_of
from examples.tiny_zoo.tasks import Task, is_satisfactory
from litellm_messplus.serving.surfaces.parameters import arm_name, read_parameters

RETRIES = 2
"""Of a call that LiteLLM has given up on for now: too many requests, or a server that is away."""
NO_OTHER = {"disable_fallbacks": True, "cache": {"no-cache": True}}
"""Has LiteLLM ask this deployment and no other, and answer nothing from its cache."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment of the proxy, by LiteLLM's id of it; it serves ``candidate`` of ``zoo``."""

    zoo: str
    candidate: str
    identity: str

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> "Deployment":
        """Read an entry of `GET /v1/model/info`.

        The plugin's rule holds: deployments of one arm are replicas of one candidate, unless
        `model_info.messplus.candidate` names it.
        """
        info, params = listed["model_info"], listed["litellm_params"]
        named = (info.get("messplus") or {}).get("candidate")
        arm = arm_name(str(params["model"]), read_parameters(params))
        return cls(str(listed["model_name"]), str(named or arm), str(info["id"]))


@dataclass(frozen=True, slots=True)
class Aside:
    """One answer. ``cost`` is what LiteLLM charges in dollars, None where it does not know;
    ``tokens`` are those of the prompt, those written, and those of the prompt that were cached."""

    deployment: str
    satisfied: bool
    cost: float | None
    tokens: tuple[int, int, int]


class Models:
    """The candidates of ``zoo``, asked from any number of threads; of each, the first
    deployment."""

    def __init__(self, client: OpenAI, deployments: Sequence[Deployment], zoo: str) -> None:
        self._client = client.with_options(max_retries=RETRIES)
        self._identities: dict[str, str] = {}
        for deployment in deployments:
            if deployment.zoo == zoo:
                self._identities.setdefault(deployment.candidate, deployment.identity)

    def ask(self, candidate: str, task: Task) -> Aside:
        """Ask for one task and check the answer. Raises SystemExit where the model cannot be asked
        aside."""
        identity = self._identities.get(candidate)
        if identity is None:
            raise _cannot(candidate, "the proxy lists no deployment of it")
        try:
            answer = self._client.chat.completions.with_raw_response.create(
                model=identity,
                messages=[{"role": "user", "content": task.prompt}],
                extra_body=NO_OTHER,
            )
        except APIStatusError as error:
            raise _cannot(candidate, message_of(error)) from error
        if not _is_aside(answer.headers, identity):
            raise _cannot(candidate, "the proxy has another answer for it")
        completion = answer.parse()
        cost = answer.headers.get("x-litellm-response-cost")
        return Aside(
            deployment=identity,
            satisfied=is_satisfactory(task, completion.choices[0].message.content or ""),
            cost=None if cost is None else float(cost),
            tokens=_tokens(completion.usage),
        )


def list_deployments(client: OpenAI) -> list[Deployment]:
    """List the deployments of the proxy that the key may see."""
    listed = cast(Mapping[str, Any], client.get("/model/info", cast_to=object))
    return [Deployment.of(entry) for entry in listed["data"]]


def _is_aside(headers: Mapping[str, str], identity: str) -> bool:
    """Tell whether that deployment answered, and the plugin took no part."""
    return "x-messplus-request-id" not in headers and headers.get("x-litellm-model-id") == identity


def _tokens(usage: Any) -> tuple[int, int, int]:
    if usage is None:
        return 0, 0, 0
    details = usage.prompt_tokens_details
    cached = 0 if details is None else details.cached_tokens or 0
    return usage.prompt_tokens, usage.completion_tokens, cached


def _cannot(candidate: str, reason: str) -> SystemExit:
    return SystemExit(f"messplus: {candidate} cannot be asked aside: {reason}")
