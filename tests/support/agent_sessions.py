"""Sessions of agents against a real proxy: each a tool loop on one of three surfaces."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.support.patience import until
from tests.support.proxy import Proxy, zoo_config
from tests.support.upstream import Reply, Upstream

LOOP = 5
"""Requests of a session, the first by a person, the others in its tool loop."""
AT_ONCE = 8
TOKENS = 2_000
"""Of a session's first prompt; enough to be cached."""
GROWTH = 50
TOOL = {"name": "look", "description": "Look around", "parameters": {"type": "object"}}


def two_workers(upstream: Upstream, folder: Path, *, cooldown_time: int, num_retries: int) -> Proxy:
    """A proxy of two workers, whose models charge a tenth for what they have cached."""
    config = zoo_config(upstream.url, folder, zoo={"alpha": 0.7})
    for each in config["model_list"]:
        info = each["model_info"]
        info["cache_read_input_token_cost"] = info["input_cost_per_token"] / 10
    config["router_settings"] = {"cooldown_time": cooldown_time, "num_retries": num_retries}
    workers = ("--num_workers", "2", "--timeout_worker_healthcheck", "60")
    return Proxy(config, folder, arguments=workers)


@dataclass
class Endpoint:
    """Models that cache prompts by the session that the prompt names, and say what they had."""

    failing: float = 0.0
    """The share of calls that fail, each time by another status."""
    draw: Random = field(default_factory=lambda: Random(0))
    had: dict[tuple[str, str], int] = field(default_factory=dict)

    def answer(self, model: str, body: dict[str, Any]) -> Reply:
        prompt: list[Any] = body.get("messages") or body["input"]
        session = _session(prompt)
        if self.draw.random() < self.failing:
            return Reply(status=self.draw.choice((429, 500, 503)))
        tokens = TOKENS + GROWTH * len(prompt)
        cached = self.had.get((model, session), 0)
        self.had[model, session] = tokens
        call = f"call_{session}_{len(prompt)}"
        return Reply(text=f"step {len(prompt)}", prompt_tokens=tokens, tool_call=call,
                     cached_tokens=min(cached, tokens))  # fmt: skip


def _session(prompt: Any) -> str:
    words = str(prompt)
    start = words.index("session ") + len("session ")
    return words[start : start + 4]


Turn = Callable[[httpx.Client, list[Any]], tuple[httpx.Response, list[Any]]]


def chat(client: httpx.Client, prompt: list[Any]) -> tuple[httpx.Response, list[Any]]:
    tools = [{"type": "function", "function": TOOL}]
    body = {"model": "zoo", "messages": prompt, "tools": tools}
    answer = client.post("/v1/chat/completions", json=body)
    message = answer.json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "seen"}
    return answer, [*prompt, message, result]


def messages(client: httpx.Client, prompt: list[Any]) -> tuple[httpx.Response, list[Any]]:
    tools = [{"name": "look", "description": "Look around", "input_schema": {"type": "object"}}]
    body = {"model": "zoo", "messages": prompt, "tools": tools, "max_tokens": 99}
    answer = client.post("/v1/messages", json=body)
    blocks = answer.json()["content"]
    (used,) = [block for block in blocks if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": used["id"], "content": "seen"}
    said = {"role": "assistant", "content": blocks}
    return answer, [*prompt, said, {"role": "user", "content": [result]}]


def responses(client: httpx.Client, prompt: list[Any]) -> tuple[httpx.Response, list[Any]]:
    body = {"model": "zoo", "input": prompt, "tools": [{"type": "function", **TOOL}]}
    answer = client.post("/v1/responses", json=body)
    items = answer.json()["output"]
    (used,) = [item for item in items if item["type"] == "function_call"]
    result = {"type": "function_call_output", "call_id": used["call_id"], "output": "seen"}
    return answer, [*prompt, *items, result]


SURFACES: tuple[Turn, ...] = (chat, messages, responses)


def session(proxy: Proxy, number: int, *, anew: float = 0.0) -> list[httpx.Response]:
    """One agent, on a connection of its own, as agents keep it. It is made ``anew`` before that
    share of the steps, and may then reach another worker."""
    turn, answers = SURFACES[number % len(SURFACES)], []
    prompt: list[Any] = [{"role": "user", "content": f"In session {number:04d}: mend the bug."}]
    draw, client = Random(number), proxy.client()
    try:
        for _ in range(LOOP):
            if draw.random() < anew:
                client.close()
                client = proxy.client()
            answer, prompt = turn(client, prompt)
            answers.append(answer)
    finally:
        client.close()
    return answers


def run(proxy: Proxy, numbers: range, *, anew: float = 0.0) -> list[list[httpx.Response]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: session(proxy, number, anew=anew), numbers))


def turns_of(
    proxy: Proxy, answers: Sequence[Sequence[httpx.Response]]
) -> list[list[dict[str, Any]]]:
    """The logged turns of each session, with who served."""
    query = (
        "SELECT requests.*, calls.candidate AS served, calls.deployment_id, calls.cost "
        "FROM requests JOIN calls ON calls.request_id = requests.request_id "
        "WHERE calls.role = 'served' ORDER BY requests.position"
    )
    ids = [[each.headers["x-messplus-request-id"] for each in one] for one in answers]
    wanted = {each for one in ids for each in one}

    def found() -> dict[str, dict[str, Any]]:
        return {row["request_id"]: row for row in proxy.rows(query)}

    until(lambda: wanted <= found().keys(), lambda: proxy.log[-4000:])
    rows = found()
    return [[rows[each] for each in one] for one in ids]
