"""A promise over tasks through a real proxy: sessions of many requests, each judged once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ALPHA = 0.8
SESSIONS = 160
LOOP = 4
"""Requests of a session, the first by a person, the others in its tool loop."""
AT_ONCE = 6
WORKERS = 2
KINDS = ("add the two small numbers", "prove the long theorem of seven lemmas")
"""Of tasks, every other: the cheapest model can do the first kind alone, the others can do all."""
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def answer(model: str, body: dict[str, Any]) -> Reply:
    prompt = body["messages"]
    step = sum(message["role"] == "assistant" for message in prompt)
    task = str(prompt[0]["content"]).partition(":")[0]
    call = None if step == LOOP - 1 else f"call {task} {step}"
    return Reply(text=f"{model} at step {step}", prompt_tokens=500, tool_call=call)


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    upstream.script = answer
    zoo = {"alpha": ALPHA, "conversations": {"unit": "conversation"}}
    config = zoo_config(upstream.url, folder, zoo=zoo, flush_seconds=0.05)
    config["model_list"] += [{**each, "model_name": "plain"} for each in config["model_list"]]
    config["messplus"]["zoos"]["plain"] = {"alpha": ALPHA}
    workers = ("--num_workers", str(WORKERS), "--timeout_worker_healthcheck", "60")
    running = Proxy(config, folder, arguments=workers).start()
    yield running
    running.stop()


@dataclass(frozen=True)
class Done:
    """A session: the ids of its answers, and whether the user was satisfied."""

    requests: list[str]
    completions: list[str]
    is_satisfied: bool


def work(proxy: Proxy, number: int) -> Done:
    """One agent, on a connection of its own, as agents keep it. Its user judges the last answer; of
    every third, the session that the agent names."""
    kind = number % len(KINDS)
    prompt: list[Any] = [{"role": "user", "content": f"Task {number:04d}: {KINDS[kind]}"}]
    session = f"session {number}" if number % 3 == 0 else None
    named = {} if session is None else {"metadata": {"session_id": session}}
    requests, completions, models = [], [], []
    with proxy.client() as client:
        for _ in range(LOOP):
            body = {"model": "zoo", "messages": prompt, "tools": TOOLS} | named
            found = client.post("/v1/chat/completions", json=body)
            assert found.status_code == 200, found.text
            message = found.json()["choices"][0]["message"]
            requests.append(found.headers["x-messplus-request-id"])
            models.append(found.headers["x-messplus-model"])
            completions.append(found.json()["id"])
            prompt.append(message)
            prompt += [
                {"role": "tool", "tool_call_id": call["id"], "content": "seen"}
                for call in message.get("tool_calls") or ()
            ]
        is_satisfied = kind == 0 or not any("tiny" in model for model in models)
        verdict = {"conversation": session or completions[-1], "satisfied": is_satisfied}
        told = client.post("/messplus/feedback", json=verdict)
    assert told.status_code == 200, told.text
    assert told.json()["conversation"] == told.json()["request_id"] == requests[0]
    return Done(requests, completions, is_satisfied)


@pytest.fixture(scope="module")
def done(proxy: Proxy) -> list[Done]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: work(proxy, number), range(SESSIONS)))


def test_the_promise_is_kept_over_tasks(proxy: Proxy, done: list[Done]) -> None:
    """With one label a task, on its last answer. The cheapest model alone satisfies half."""
    satisfied = [each.is_satisfied for each in done]
    served = proxy.rows("SELECT served FROM request_outcomes WHERE zoo = 'zoo'")
    huge = sum(row["served"] is not None and "huge" in row["served"] for row in served)
    print(f"satisfied {sum(satisfied) / SESSIONS:.3f}, huge served {huge / len(served):.2f}")

    assert sum(satisfied) >= (ALPHA - 0.03) * SESSIONS
    assert huge < 0.9 * len(served), "the most expensive one alone holds any promise"


def test_a_task_is_one_in_the_log_and_in_the_status(proxy: Proxy, done: list[Done]) -> None:
    rows = proxy.rows("SELECT * FROM conversations WHERE zoo = 'zoo'")
    verdicts = {row["conversation"]: (row["turns"], row["verdict"]) for row in rows}
    assert verdicts == {each.requests[0]: (LOOP, float(each.is_satisfied)) for each in done}
    with proxy.client() as client:
        (level,) = (
            each for each in client.get("/messplus/status").json()["levels"] if each["zoo"] == "zoo"
        )
    found = level["overall"]["satisfaction"]
    assert (found["unit"], found["requests"], found["judged"]) == (
        *("conversations", SESSIONS, SESSIONS),
    )
    assert found["rate"] == pytest.approx(sum(each.is_satisfied for each in done) / SESSIONS)


def test_any_of_its_ids_means_the_task_and_a_second_verdict_replaces_the_first(
    proxy: Proxy, done: list[Done]
) -> None:
    one = done[-1]
    verdict = {"satisfied": not one.is_satisfied}
    with proxy.client() as client:
        for given in ({"id": one.requests[2]}, {"conversation": one.requests[0]}):
            told = client.post("/messplus/feedback", json=given | verdict).json()
            assert told["call_id"] == f"{one.requests[0]}.0"
        assert told["outcome"] == "unchanged"
        back = {"id": one.completions[1], "satisfied": one.is_satisfied}
        assert client.post("/messplus/feedback", json=back).json()["outcome"] == "counted"


def test_what_cannot_be_judged_so_is_refused_with_a_reason(proxy: Proxy, done: list[Done]) -> None:
    def refused(client: httpx.Client, body: dict[str, Any]) -> tuple[int, str]:
        found = client.post("/messplus/feedback", json=body | {"satisfied": True})
        return found.status_code, json.dumps(found.json())

    with proxy.client() as client:
        plain = ask(client, model="plain").headers["x-messplus-request-id"]
        status, told = refused(client, {"conversation": plain})
        assert status == 409
        assert "the promise of zoo plain counts requests" in told
        status, told = refused(client, {"id": plain, "conversation": plain})
        assert status == 422
        assert "exactly one of `id` and `conversation`" in told
        assert refused(client, {"conversation": "nobody"})[0] == 404
        assert refused(client, {"conversation": plain, "call_id": f"{plain}.0"})[0] == 422


def test_what_the_workers_came_to_is_what_their_log_says(proxy: Proxy, done: list[Done]) -> None:
    """Folded from its beginning; so a restart goes on exactly."""
    calls = "SELECT 1 FROM calls JOIN requests USING (request_id) WHERE zoo = 'zoo'"
    until(lambda: len(proxy.rows(calls)) == SESSIONS * LOOP)
    arguments = ["verify", "--config", str(proxy.folder / "config.yaml"), "--json"]
    arguments += ["--url", proxy.url, "--key", proxy.master_key]
    report = json.loads(CliRunner().invoke(app, arguments).stdout)

    assert report["is_sound"], report["findings"]
    told = [finding["told"] for finding in report["findings"]]
    assert "zoo, default: the proxy's queue is the fold's" in told
