"""A scripted hour: five zoos, what LiteLLM would call of the plugin, and what clients say."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import httpx
import litellm
from fastapi import HTTPException
from litellm.types.router import RouterRateLimitError

from litellm_messplus.brain import buying
from litellm_messplus.brain.buying import LabelPurse
from litellm_messplus.serving.plugin import MessplusPlugin
from tests.goldens.served import proxy_config, served
from tests.goldens.still import Now
from tests.support.in_process import call, log_event

MODELS = {"small": 1e-6, "medium": 4e-6, "large": 2e-5}
SECONDS = {"small": 0.4, "medium": 0.9, "large": 2.2}
STEPS, STEP_SECONDS = 36, 100.0
OUTAGE = range(24, 28)
ERRORS: list[Exception] = [
    TimeoutError("no answer"),
    HTTPException(499, "the client is gone"),
    litellm.BadRequestError("too long", "small", "openai"),
    litellm.InternalServerError("broken", "openai", "small"),
    RouterRateLimitError("chat", 5.0, enable_pre_call_checks=False, cooldown_list=[]),
]
"""One of each `Failure`, as LiteLLM raises them."""
TOPICS = ("the parser", "the cache of the scheduler", "a poem on rain", "3 + 4 * 5", "SELECT 1")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
ZOOS: dict[str, dict[str, Any]] = {
    "chat": {
        "alpha": 0.75,
        "service_levels": {"gold": {"alpha": 0.9}},
        "labels": {"checks": {"complete": True}},
        "buy_labels": {"how": "grade", "judge": "critic"},
        "label_rate": 0.4,
    },
    "agents": {"alpha": 0.7},
    "careful": {
        "alpha": 0.7,
        "mode": "canary",
        "share": 0.5,
        "before": "large",
        "labels": {"checks": {"complete": True}},
        "buy_labels": {"share_of_saved": 0.9},
    },
    "quiet": {"alpha": 0.7, "mode": "watch", "before": "litellm", "watch": {"sample": 0.4}},
    "paper": {"alpha": 0.7, "policy": "paper", "V": 10.0, "c": 0.5},
}


def config(folder: Path) -> dict[str, Any]:
    """Return the configuration of the proxy."""
    return proxy_config(folder, ZOOS, MODELS, store_text=True, seed=7)


async def run(folder: Path) -> Any:
    """Play the hour, and leave its database in the folder; return what was counted."""
    given = config(folder)
    at_once = partial(LabelPurse, start_allowance=1.0)  # nothing is saved in so short a time
    with patch.object(buying, "LabelPurse", at_once):
        async with served(given) as (plugin, client):
            script = Script(plugin, client, given["model_list"])
            for step in range(STEPS):
                await script.play(step)
            await asyncio.sleep(60.0)
            return (await client.get("/messplus/health")).json()


@dataclass
class Talk:
    """A conversation: the number of the request that began it, and its turns so far."""

    begun: int
    turns: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Script:
    """Those who ask, one after the other."""

    plugin: MessplusPlugin
    client: httpx.AsyncClient
    deployments: list[dict[str, Any]]
    random: Random = field(default_factory=lambda: Random(5))
    prompts: dict[str, Talk] = field(default_factory=dict)
    asked: int = 0

    async def play(self, step: int) -> None:
        """Play a step: a request to each of two zoos; at half time a change of the canary."""
        zoos = list(ZOOS)
        for zoo in (zoos[step % len(zoos)], zoos[step // 2 % len(zoos)]):
            await self.request(zoo, is_out=step in OUTAGE)
            await asyncio.sleep(self.random.uniform(1.0, 4.0))
        if step == STEPS // 2:
            known = (await self.client.get("/messplus/zoos/careful")).json()["revision"]
            change = {"revision": known, "mode": "canary", "share": 0.8, "reason": "half time"}
            answer = await self.client.patch("/messplus/zoos/careful", json=change)
            assert answer.status_code == 200, answer.text
        over = 1000.0 + STEP_SECONDS * (step + 1)
        Now.seconds = max(Now.seconds, over)  # every loop turns once, late

    async def request(self, zoo: str, *, is_out: bool) -> None:
        """Ask, be served by who is ranked first, end the call, and say something of it."""
        self.asked += 1
        prompt = self._prompt(zoo)
        arguments = {**call(f"call-{self.asked}", metadata=self._metadata(zoo)), "messages": prompt}
        own = [each for each in self.deployments if each["model_name"] == zoo]
        ranked = await self.plugin.async_filter_deployments(zoo, own, prompt, arguments)
        chosen = min(ranked, key=lambda each: each["litellm_params"].get("order", 0))
        model = chosen["model_info"]["messplus"]["candidate"]
        await asyncio.sleep(self.random.uniform(0.5, 1.5) * SECONDS[model])
        if is_out:
            error = ERRORS[self.asked % len(ERRORS)]
            await self.plugin.async_post_call_failure_hook(arguments, error, None)
            return
        await self._answered(zoo, prompt, arguments, chosen)

    def _metadata(self, zoo: str) -> dict[str, Any]:
        """Say whose key it is: one key leads a conversation, and that of every fourth is gold."""
        number = self.prompts[zoo].begun % 4
        found = {"user_api_key_hash": f"key-{number}", "user_api_key_alias": f"team {number}"}
        level = {"messplus_service_level": "gold"} if number == 3 else {}
        return {**found, "user_api_key_metadata": level}

    def _prompt(self, zoo: str) -> list[dict[str, Any]]:
        """Go on with the zoo's conversation three times in four, else begin another."""
        talk = self.prompts.setdefault(zoo, Talk(self.asked))
        if len(talk.turns) > 6 or self.random.random() < 0.25:
            talk = self.prompts[zoo] = Talk(self.asked)
        if talk.turns and (calls := talk.turns[-1].get("tool_calls")):
            result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "done"}
            return [*talk.turns, result]
        content: Any = f"Please explain {self.random.choice(TOPICS)}, in {self.asked} words."
        if self.asked % 13 == 0:
            content = [{"type": "text", "text": content}, IMAGE]
        return [*talk.turns, {"role": "user", "content": content}]

    async def _answered(
        self, zoo: str, prompt: list[Any], arguments: dict[str, Any], chosen: dict[str, Any]
    ) -> None:
        model = chosen["model_info"]["messplus"]["candidate"]
        good = self.random.random() < {"small": 0.5, "medium": 0.75, "large": 0.95}[model]
        message: dict[str, Any] = {"role": "assistant"}
        message["content"] = "a good answer" if good else "a bad answer"
        if self.asked % 3 == 0:
            function = {"name": "run", "arguments": f"step {self.asked}"}
            asked = {"id": f"c-{self.asked}", "type": "function", "function": function}
            message["tool_calls"] = [asked]
        cut = "length" if self.asked % 19 == 0 else "stop"
        used: dict[str, Any] = {"prompt_tokens": 300 + self.asked}
        used["completion_tokens"] = 40 + self.asked % 60
        choice = {"message": message, "finish_reason": cut}
        usage = {**used, "total_tokens": sum(used.values())}
        answer = {"id": f"chatcmpl-{self.asked}", "choices": [choice], "usage": usage}
        info = {"model_info": chosen["model_info"]}
        await self.plugin.async_post_call_response_headers_hook(arguments, None, answer, None, info)
        now = Now.date().timestamp()
        used |= {"startTime": now - SECONDS[model], "endTime": now}
        used |= {"id": answer["id"], "cache_hit": self.asked % 23 == 0}
        event = log_event(arguments, chosen["model_info"]["id"], **used)
        await self.plugin.async_log_success_event(event, answer, None, None)
        self.prompts[zoo].turns = [*prompt, message]
        if self.random.random() < 0.5:
            await asyncio.sleep(2.0)
            said = {"satisfied": good, **({"comment": "thanks"} if self.asked % 5 == 0 else {})}
            sent = await self.client.post("/messplus/feedback", json={"id": answer["id"], **said})
            assert sent.status_code == 200, sent.text
