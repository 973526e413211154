"""The real plugin, started as in a proxy, with its routes in reach and without LiteLLM's server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import litellm
from fastapi import FastAPI
from litellm.proxy import proxy_server

from litellm_messplus.serving import startup, worker_hands
from litellm_messplus.serving.deployments.deployment import exploration_target
from litellm_messplus.serving.plugin import MessplusPlugin
from tests.support.judge import ScriptedJudge

ADMINISTRATOR = {"authorization": "Bearer sk-of-an-administrator"}
CRITIC = ScriptedJudge("a good answer", error_rate=0.1)


def url(folder: Path) -> str:
    """Return the address of the database in that folder."""
    return f"sqlite+aiosqlite:///{folder / 'messplus.db'}"


def proxy_config(
    folder: Path, zoos: dict[str, Any], prices: dict[str, float], **given: Any
) -> dict[str, Any]:
    """Return the configuration of a proxy whose zoos have the same models, with a judge."""
    models = [
        deployment(zoo, name, price, supports_vision=name == "large")
        for zoo in zoos
        for name, price in prices.items()
    ]
    return {
        "model_list": [*models, deployment("critic", "critic", min(prices.values()) / 10)],
        "messplus": {"database": url(folder), "zoos": zoos, "brain": "inside", **given},
    }


def deployment(group: str, candidate: str, price: float, **info: Any) -> dict[str, Any]:
    """Return one deployment, whose id and candidate are named alike."""
    return {
        "model_name": group,
        "litellm_params": {"model": f"openai/{candidate}", "api_key": "none"},
        "model_info": {
            "id": f"{group}-{candidate}",
            "input_cost_per_token": price / 4,
            "output_cost_per_token": price,
            "messplus": {"candidate": candidate},
            **info,
        },
    }


class Router(litellm.Router):  # type: ignore[misc]
    """LiteLLM's router, whose models are scripted: what is called unseen, and the judge."""

    async def acompletion(self, model: str, messages: list[Any], **given: Any) -> Any:
        """Answer at once; the medium model is good half of the time."""
        candidate = exploration_target.get()
        text = "a good answer" if candidate == "large" or len(str(messages)) % 2 else "a bad one"
        if model == "critic":
            text = CRITIC.reply({"messages": messages})
        if "better" in str(given.get("response_format")):
            better = ("neither", "answer_1", "answer_2")[len(str(messages)) % 3]
            text = json.dumps({"reason": "read", "better": better})
        message = {"role": "assistant", "content": text}
        answer = litellm.ModelResponse(
            id=f"chatcmpl-unseen-{candidate}",
            choices=[{"message": message, "finish_reason": "stop"}],
            usage={"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60},
        )
        answer._hidden_params = {"response_cost": 0.0001, "model_id": f"{model}-{candidate}"}
        return answer


@asynccontextmanager
async def served(config: dict[str, Any]) -> AsyncIterator[tuple[MessplusPlugin, httpx.AsyncClient]]:
    """Start the plugin with that configuration, and open a client of its routes."""
    proxy_server.llm_router = Router(model_list=config["model_list"])
    vars(worker_hands)["authenticate"] = _administrator
    # The routes join an application of their own: LiteLLM's has hundreds of others.
    app, proxy_server.app = proxy_server.app, FastAPI(title="litellm", version="VERSION")
    stop = proxy_server.proxy_shutdown_event
    try:
        plugin = startup._start(config, None)
        transport = httpx.ASGITransport(proxy_server.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://proxy", headers=ADMINISTRATOR
        ) as client:
            try:
                yield plugin, client
            finally:
                await plugin.close()
    finally:
        proxy_server.app, proxy_server.proxy_shutdown_event = app, stop


async def _administrator(_request: Any) -> tuple[str | None, bool]:
    return None, True
