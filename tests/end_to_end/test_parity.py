"""Answers are compared with the largest's in the background of a real proxy, and labels bought
within what they may cost."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.judge import JUDGE, question, shown_answers
from tests.support.proxy import Config, Proxy, ask, deployment, quick, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

LARGEST = "openai/huge"
JUDGE_PRICE = 1e-6


SAYS = {"tiny": "It is 40.", "middle": "It is 41.", "huge": "It is 42."}


def says(model: str, prompt: str) -> str:
    """Each model has an answer of its own, but where the prompt asks all for the same."""
    return "The same." if "alike" in prompt else SAYS[model]


def the_largests(answers: Mapping[str, str]) -> str:
    """Prefers the largest's answer, wherever it stands."""
    return max(answers, key=lambda name: answers[name] == SAYS["huge"])


def serve(upstream: Upstream, better: Any) -> None:
    def script(model: str, body: dict[str, Any]) -> Reply:
        if model == JUDGE:
            return Reply(json.dumps({"reason": "so", "better": better(shown_answers(body))}))
        return Reply(says(model, body["messages"][-1]["content"]))

    upstream.script = script
    upstream.requests.clear()


def config(upstream: Upstream, folder: Path, bought: Any) -> Config:
    zoo = {"alpha": 0.6, **bought}
    made = zoo_config(upstream.url, folder, zoo=zoo)
    made["model_list"].append(deployment(JUDGE, JUDGE, upstream.url, JUDGE_PRICE))
    return made


@contextmanager
def running(made: Config, folder: Path) -> Iterator[Proxy]:
    proxy = Proxy(made, folder).start()
    try:
        yield proxy
    finally:
        proxy.stop()


def asked_of(client: httpx.Client, prompts: list[str]) -> dict[str, str]:
    """Prompts by the id of their request; every one is answered."""
    found = {}
    for prompt in prompts:
        answer = ask(client, prompt)
        assert answer.status_code == 200
        found[answer.headers["x-messplus-request-id"]] = prompt
    return found


def judged(upstream: Upstream) -> list[dict[str, Any]]:
    """What the judge was sent."""
    return [body for body in list(upstream.requests) if body["model"] == JUDGE]


PARITY = {"buy_labels": {"judge": JUDGE}, "label_rate": 1.0}
LABELS = "SELECT labels.*, candidate, role FROM labels JOIN calls USING (call_id)"


def all_labels(proxy: Proxy, requests: int) -> list[dict[str, Any]]:
    """Wait until each call is labelled: two of a request, or all three where one explores."""
    decided = proxy.wait_for_rows("SELECT exploration_calls FROM requests", requests)
    return proxy.wait_for_rows(LABELS, sum(1 + each["exploration_calls"] for each in decided))


def test_equal_answers_satisfy_and_nobody_is_asked(upstream: Upstream, tmp_path: Path) -> None:
    serve(upstream, the_largests)
    with running(config(upstream, tmp_path, PARITY), tmp_path) as proxy, proxy.client() as client:
        asked = asked_of(client, [f"alike {number}" for number in range(8)])
        labels = all_labels(proxy, len(asked))

    assert judged(upstream) == []
    assert proxy.rows("SELECT * FROM gradings") == []
    assert {label["value"] for label in labels} == {1.0}
    assert {(label["source"], label["probability"]) for label in labels} == {("parity", 1.0)}
    of_largest = {each["request_id"] for each in labels if each["candidate"] == LARGEST}
    assert of_largest == set(asked)


def test_different_answers_are_compared_blind_and_in_both_orders(
    upstream: Upstream, tmp_path: Path
) -> None:
    serve(upstream, the_largests)
    with running(config(upstream, tmp_path, PARITY), tmp_path) as proxy, proxy.client() as client:
        asked = asked_of(client, [f"sum {number}" for number in range(6)])
        labels = all_labels(proxy, len(asked))

    others = [label for label in labels if label["candidate"] != LARGEST]
    assert len(judged(upstream)) == 2 * len(others)
    for prompt in asked.values():
        bodies = [body for body in judged(upstream) if question(body) == prompt]
        orders = {tuple(shown_answers(body).values()) for body in bodies}
        assert orders == {order[::-1] for order in orders}
        for body in bodies:
            told = "\n".join(str(message["content"]) for message in body["messages"])
            assert not any(secret in told for secret in ("huge", "tiny", "openai", *asked))
    assert {label["value"] for label in others} == {0.0}
    assert {label["value"] for label in labels if label["candidate"] == LARGEST} == {1.0}
    preferred = proxy.rows("SELECT preferred, cost FROM gradings")
    assert sorted(row["preferred"] for row in preferred) == sorted(
        ["first", "second"] * len(others)
    )
    assert all(row["cost"] > 0.0 for row in preferred)
    unseen = proxy.rows("SELECT * FROM calls WHERE role = 'exploration'")
    assert all(row["cost"] > 0.0 for row in unseen)


BUDGET = 24.0 * (15 * 1e-4 + 2 * 15 * JUDGE_PRICE)
"""As much as the labels of 24 requests cost: an answer of the largest's, and two gradings."""


def within_budget(upstream: Upstream, folder: Path) -> Config:
    """Nothing has been saved yet, so what labels may cost at the start is raised to the budget."""
    made = config(upstream, folder, {"buy_labels": {"judge": JUDGE, "budget_per_day": BUDGET}})
    return quick(made, folder, purse={"start_allowance": 1.0})


def spent(proxy: Proxy) -> float:
    """On labels: unseen calls, and the judge."""
    (found,) = proxy.rows(
        "SELECT (SELECT COALESCE(SUM(cost), 0) FROM calls WHERE role = 'exploration')"
        " + (SELECT COALESCE(SUM(cost), 0) FROM gradings) AS cost"
    )
    return float(found["cost"])


def test_the_days_budget_holds_over_a_restart(upstream: Upstream, tmp_path: Path) -> None:
    """For all that labels cost: of 240 requests it would label more than a hundred."""
    serve(upstream, the_largests)
    proxy = Proxy(within_budget(upstream, tmp_path), tmp_path).start()
    try:
        with proxy.client() as client:
            asked_of(client, [f"before {number}" for number in range(120)])
            proxy.wait_for_rows("SELECT * FROM labels WHERE source = 'parity'", 1)
        proxy.kill()
        before = spent(proxy)
        proxy.start()
        with proxy.client() as client:
            asked_of(client, [f"after {number}" for number in range(120)])
        proxy.stop()
    finally:
        proxy.kill()

    assert 0.0 < before <= BUDGET
    assert before <= spent(proxy) <= BUDGET
