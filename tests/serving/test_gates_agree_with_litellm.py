"""Made-up deployments and requests: what LiteLLM's own filters would drop, the gates do not pass.

LiteLLM filters after us. A model that it then drops was chosen with a propensity that was never
true, and an exploration of it fails.
"""

from copy import deepcopy
from random import Random
from typing import Any

import litellm
import pytest

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.capabilities import Answer
from litellm_messplus.serving.deployments.gates import Gates
from litellm_messplus.serving.surfaces.request import IncomingRequest, read_request
from tests.serving.test_gated_routing import SURFACES, TOOL
from tests.support import litellm_router
from tests.support.journey import arguments_of
from tests.support.litellm_router import deployments, identities

ROUTERS, REQUESTS = 25, 24
TAGS = ("default", "paid", "fast", "eu-only")
WORDS = (
    "sum",
    "naïve",
    "数字",
    "🙂",
    "    ",
    "def f(x):",
    "0x7fffffff",
    "antidisestablishmentarian",
)
MODELS = ("openai/own", "hosted_vllm/llama", "gpt-4", "gpt-4o", "gpt-3.5-turbo", "azure/my-name")
Case = tuple[dict[str, Any], list[dict[str, Any]] | None]


def made_up_router(random: Random) -> litellm.Router:
    return litellm.Router(
        model_list=[made_up_deployment(random, number) for number in range(random.randint(2, 6))],
        enable_pre_call_checks=True,
        enable_tag_filtering=random.random() < 0.7,
        tag_filtering_match_any=random.random() < 0.5,
    )


def made_up_deployment(random: Random, number: int) -> dict[str, Any]:
    params: dict[str, Any] = {"model": random.choice(MODELS), "api_key": "none"}
    if params["model"].startswith(("hosted", "azure")):
        params["api_base"] = "http://localhost:1"
    if random.random() < 0.6:
        params["tags"] = random.sample(TAGS, random.randint(0, 3))
    if random.random() < 0.3:
        params["region_name"] = random.choice(["eu", "us"])
    info: dict[str, Any] = {"id": str(number)}
    if random.random() < 0.7:
        info["max_input_tokens"] = random.choice([10, 30, 100, 300, 1000])
    if random.random() < 0.1:
        info["enable_tag_filtering"] = random.random() < 0.5
    return {"model_name": "zoo", "litellm_params": params, "model_info": info}


def made_up_request(random: Random, number: int) -> Case:
    surface = SURFACES[number % 3]
    text = " ".join(random.choices(WORDS, k=random.choice([1, 3, 10, 30, 100, 400])))
    turns = [{"role": "user", "content": text} for _ in range(random.choice([1, 1, 3]))]
    given: dict[str, Any] = {"tags": random.sample(["paid", "fast", "!eu-only", "&paid"], 1)}
    if random.random() < 0.4:
        given["tags"] = []
    if random.random() < 0.3:
        given["tools"] = [TOOL[surface]] * random.choice([1, 8])
    if random.random() < 0.2:
        given["allowed_model_region"] = random.choice(["eu", "us"])
    if surface == "acompletion" and random.random() < 0.3:
        given["response_format"] = {"type": "json_object"}
    if surface == "aresponses":
        if random.random() < 0.5:
            given["instructions"] = "Be brief."
        return arguments_of(call_type=surface, input=turns, **given), None
    if surface == "anthropic_messages" and random.random() < 0.5:
        given["system"] = "Be brief."
    return arguments_of(call_type=surface, **given), turns


def cases() -> list[tuple[int, litellm.Router, Case]]:
    random = Random(17)
    routers = [made_up_router(random) for _ in range(ROUTERS)]
    return [
        (number, router, made_up_request(random, number))
        for router in routers
        for number in range(REQUESTS)
    ]


async def answers(
    router: litellm.Router, arguments: dict[str, Any], messages: Any
) -> dict[str, dict[str, Answer]]:
    counters = Counters()
    gates = Gates(counters, count_seconds=60.0, router=lambda: router)
    request = read_request(messages, arguments)
    assert isinstance(request, IncomingRequest)
    needs = gates.needs(request)
    found = await gates.answers(request, needs, deployments(router))
    assert counters.as_dict() == {}
    return found


def kept_by_checks(router: litellm.Router, arguments: dict[str, Any], messages: Any) -> set[str]:
    """Where all are dropped for their windows, LiteLLM refuses the request."""
    try:
        kept = router._pre_call_checks(
            "zoo",
            deployments(router),
            messages=messages,
            input=arguments.get("input"),
            request_kwargs=arguments,
        )
    except litellm.ContextWindowExceededError:
        return set()
    return {each["model_info"]["id"] for each in kept}


async def kept_by_tags(router: litellm.Router, arguments: dict[str, Any]) -> set[str]:
    """Where it finds none it refuses the request, whatever we say: then all are kept by us."""
    try:
        return await litellm_router.kept_by_tags(router, "zoo", arguments)
    except ValueError:
        return set(identities(router))


@pytest.mark.filterwarnings("ignore")
async def test_gates_agree_with_litellms_checks_and_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    # A router writes the windows of its deployments into the entries of their models, for good.
    monkeypatch.setattr(litellm, "model_cost", deepcopy(litellm.model_cost))
    checked, dropped = 0, 0
    for number, router, (arguments, messages) in cases():
        said = await answers(router, arguments, messages)
        by_checks = {
            identity
            for identity, each in said.items()
            if Answer.NO not in (each[name] for name in each if name != "tags")
        }
        by_tags = {identity for identity, each in said.items() if each["tags"] is Answer.YES}
        assert by_checks == kept_by_checks(router, arguments, messages), number
        assert by_tags == await kept_by_tags(router, arguments), number
        checked += len(said)
        dropped += len(said) - len(by_checks & by_tags)
    assert checked > 1500
    assert 0.2 * checked < dropped < 0.8 * checked
