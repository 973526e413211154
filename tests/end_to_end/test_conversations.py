"""Sessions of agents through real proxies: no loop changes its model, and no request is refused."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest

from tests.support.proxy import Proxy, until, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

SESSIONS = 100
LOOP = 5
"""Requests of a session, the first by a person, the others in its tool loop."""
AT_ONCE = 8
TOKENS = 2_000
"""Of a session's first prompt; enough to be cached."""
GROWTH = 50
WORKERS = 2
TOOL = {"name": "look", "description": "Look around", "parameters": {"type": "object"}}


@dataclass
class Endpoint:
    """Models that cache prompts by the session that the prompt names, and say what they had."""

    refusing: str | None = None
    had: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def answer(self, model: str, body: dict[str, Any]) -> Reply:
        prompt: list[Any] = body.get("messages") or body["input"]
        session = _session(prompt)
        if model == self.refusing:
            self.refused.add(session)
            return Reply(status=429)
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


@pytest.fixture(scope="module")
def endpoint(upstream: Upstream) -> Endpoint:
    found = Endpoint()
    upstream.script = found.answer
    return found


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path, endpoint: Endpoint) -> Iterator[Proxy]:
    config = zoo_config(
        upstream.url, folder, zoo={"alpha": 0.7}, flush_seconds=0.05, deadline_seconds=5.0
    )
    for each in config["model_list"]:
        info = each["model_info"]
        info["cache_read_input_token_cost"] = info["input_cost_per_token"] / 10
    config["router_settings"] = {"cooldown_time": 3, "num_retries": 2}
    workers = ("--num_workers", str(WORKERS), "--timeout_worker_healthcheck", "60")
    running = Proxy(config, folder, arguments=workers).start()
    yield running
    running.stop()


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


def session(proxy: Proxy, number: int) -> list[httpx.Response]:
    """One agent, on a connection of its own, as agents keep it."""
    turn, answers = SURFACES[number % len(SURFACES)], []
    prompt: list[Any] = [{"role": "user", "content": f"In session {number:04d}: mend the bug."}]
    with proxy.client() as client:
        for _ in range(LOOP):
            answer, prompt = turn(client, prompt)
            answers.append(answer)
    return answers


def run(proxy: Proxy, numbers: range) -> list[list[httpx.Response]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: session(proxy, number), numbers))


def turns_of(proxy: Proxy, answers: list[list[httpx.Response]]) -> list[list[dict[str, Any]]]:
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

    until(lambda: wanted <= found().keys(), 30.0, lambda: proxy.log[-4000:])
    rows = found()
    return [[rows[each] for each in one] for one in ids]


def expected(row: dict[str, Any]) -> dict[str, float]:
    """SQLite gives JSON as text."""
    found = row["estimated_cost"]
    costs: dict[str, float] = json.loads(found) if isinstance(found, str) else found
    return costs


def counters(proxy: Proxy) -> dict[str, Any]:
    with proxy.client() as client:
        found: dict[str, Any] = client.get("/messplus/health").json()
    return found


def test_no_loop_changes_its_model(proxy: Proxy, endpoint: Endpoint) -> None:
    answers = run(proxy, range(SESSIONS))

    assert {each.status_code for one in answers for each in one} == {200}
    wrong = ("identity_failures", "holds_unknown", "holds_broken", "routing_failures")
    assert [name for name in wrong if name in counters(proxy)] == [], proxy.log[-4000:]
    sessions = turns_of(proxy, answers)
    assert {len({row["deployment_id"] for row in one}) for one in sessions} == {1}
    assert len({row["served"] for one in sessions for row in one}) > 1, "all by one model"
    conversations = [{row["conversation"] for row in one} for one in sessions]
    assert {len(each) for each in conversations} == {1}, "a session in two conversations"
    assert len(set.union(*conversations)) == SESSIONS, "two sessions in one conversation"
    for one in sessions:
        assert [row["turn"] for row in one] == list(range(1, LOOP + 1))
        assert [row["hold"] for row in one] == [None, *["tool_loop"] * (LOOP - 1)]
        assert {row["reason"] for row in one[1:]} == {"held"}


def test_what_a_warm_turn_costs_was_expected(proxy: Proxy, endpoint: Endpoint) -> None:
    """Estimated over charged, in the median: 6.2 before caches were known."""
    answers = run(proxy, range(SESSIONS, SESSIONS + 30))

    warm = [row for one in turns_of(proxy, answers) for row in one[2:]]
    ratios = [expected(row)[row["chosen"]] / row["cost"] for row in warm]
    print(f"estimated over charged: {median(ratios):.3f} of {len(ratios)}")
    assert 0.9 <= median(ratios) <= 1.1


def test_loops_leave_a_model_that_refuses_and_nobody_is_refused(
    proxy: Proxy, endpoint: Endpoint
) -> None:
    """A deployment in cooldown is lost to its loops; LiteLLM's retries find another."""
    endpoint.refusing = "tiny"
    try:
        answers = run(proxy, range(200, 200 + SESSIONS // 4))
    finally:
        endpoint.refusing = None

    assert {each.status_code for one in answers for each in one} == {200}
    for one in turns_of(proxy, answers):
        for before, now in pairwise(one):
            if before["served"] != now["served"]:
                assert now["hold"] == "lost" or now["served"] != now["chosen"]


def test_the_view_says_what_conversations_cost(proxy: Proxy) -> None:
    answers = run(proxy, range(300, 303))
    rows = defaultdict(list)
    for one in turns_of(proxy, answers):
        for row in one:
            rows[row["conversation"]].append(row)
    for name, turns in rows.items():
        (found,) = proxy.rows("SELECT * FROM conversations WHERE conversation = ?", name)
        assert (found["turns"], found["lines"]) == (LOOP, 1)
        assert (found["held"], found["switches"]) == (LOOP - 1, 0)
        assert found["cost"] >= sum(row["cost"] for row in turns) * (1 - 1e-9)
