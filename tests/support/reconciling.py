"""LiteLLM's own reconcile code in a real proxy, fed with models as its database would give them,
and the plugin's look at them: written beside a test proxy's configuration as a callback."""

from typing import Any

import httpx

CALLBACK = "reconciling.instance"
MODULE = """
from types import SimpleNamespace

from fastapi import Request
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server
from litellm_messplus.serving.litellm_seam import deployments_of


@proxy_server.app.post("/reconcile")
async def reconcile(request: Request):
    found = [SimpleNamespace(**each) for each in await request.json()]
    await proxy_server.proxy_config._update_llm_router(
        new_models=found, proxy_logging_obj=proxy_server.proxy_logging_obj
    )
    return sorted(each["model_info"]["id"] for each in deployments_of(proxy_server.llm_router))


@proxy_server.app.post("/sweep")
async def sweep():
    from litellm_messplus.plugin import instance as plugin

    plugin.parts.live.look()


instance = CustomLogger()
"""


def stored(model: str, url: str, price: float, identity: str | None = None) -> dict[str, Any]:
    """A model of the group `zoo` as LiteLLM's database has it."""
    return {
        "model_id": identity or model,
        "model_name": "zoo",
        "litellm_params": {
            "model": f"openai/{model}",
            "api_base": url,
            "api_key": "none",
            "input_cost_per_token": price,
            "output_cost_per_token": price,
        },
        "model_info": {"id": identity or model},
        "blocked": False,
    }


def reconcile(client: httpx.Client, models: list[dict[str, Any]]) -> list[str]:
    """Let the proxy take these models over from its database; returns the ids that it has then."""
    answer = client.post("/reconcile", json=models)
    assert answer.status_code == 200, answer.text
    found: list[str] = answer.json()
    return found


def sweep(client: httpx.Client) -> None:
    """Let the proxy look at its models, and report what it has to tell."""
    client.post("/sweep").raise_for_status()
