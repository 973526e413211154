"""A judge grades in the background of a real proxy: on a sample, blind, and within its bounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.labels.buying import is_drawn
from tests.support.judge import JUDGE, ScriptedJudge, question, shown_answers
from tests.support.proxy import PAPER, Config, Proxy, ask, deployment, quick, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

JUDGE_PRICE = 1e-3
CANDIDATE_PRICES = {"openai/tiny": 1e-6, "openai/middle": 1e-5, "openai/huge": 1e-4}
TOKENS = 15
SAYS = {"tiny": "It is 40.", "middle": "It is 41.", "huge": "It is 42."}
"""No model names itself: whoever sees only the answers cannot know. Some calls of `tiny`, which the
user does not see, end long after the answer that the user sees."""
CRITIC = ScriptedJudge(good=SAYS["huge"], error_rate=0.2)


def script(model: str, body: dict[str, Any]) -> Reply:
    if model != JUDGE:
        is_late = model == "tiny" and body["messages"][-1]["content"].endswith("0")
        return Reply(SAYS[model], delay_seconds=0.5 if is_late else 0.0)
    return Reply(f"```json\n{CRITIC.reply(body)}\n```")


def config(upstream: Upstream, folder: Path, rate: float = 1.0) -> Config:
    """Every request is explored, so that each has three answers, all of them known."""
    buying = {"how": "grade", "judge": JUDGE}
    zoo = {**PAPER, "c": 1e6, "buy_labels": buying, "label_rate": rate}
    made = zoo_config(upstream.url, folder, zoo=zoo)
    made["model_list"].append(deployment(JUDGE, JUDGE, upstream.url, JUDGE_PRICE))
    return made


def asked_of(client: httpx.Client, prompts: list[str]) -> dict[str, str]:
    """Prompts by the id of their request; every one is answered."""
    found = {}
    for prompt in prompts:
        answer = ask(client, prompt)
        assert answer.status_code == 200
        found[answer.headers["x-messplus-request-id"]] = prompt
    return found


def health(client: httpx.Client) -> dict[str, int]:
    found: dict[str, int] = client.get("/messplus/health").json()
    return found


def judge_bodies(upstream: Upstream, word: str = "") -> list[dict[str, Any]]:
    """What the judge was sent about questions with a word in them."""
    bodies = [body for body in list(upstream.requests) if body["model"] == JUDGE]
    return [body for body in bodies if word in question(body)]


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    upstream.script = script
    running = Proxy(config(upstream, folder, rate=0.5), folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client() as client:
        yield client


@pytest.fixture(scope="module")
def sampled(proxy: Proxy, client: httpx.Client) -> dict[str, str]:
    """Prompts that were graded, by the id of their request: the sample, and no other."""
    asked = asked_of(client, [f"sum number {number}" for number in range(60)])
    expected = {name: text for name, text in asked.items() if is_drawn(0, name, 0.5)}
    assert 10 < len(expected) < 50
    graded = "SELECT * FROM gradings WHERE status = 'graded'"
    proxy.wait_for_rows(graded, len(expected))
    proxy.wait_for_rows("SELECT * FROM labels", 3 * len(expected))
    assert {row["request_id"] for row in proxy.rows(graded)} == set(expected)
    return expected


def test_every_sampled_answer_has_its_label(proxy: Proxy, sampled: dict[str, str]) -> None:
    labels = proxy.rows("SELECT * FROM labels JOIN calls USING (call_id) ORDER BY call_id")

    assert len(labels) == 3 * len(sampled)
    for label in labels:
        prompt = sampled[label["request_id"]]
        said = SAYS[label["candidate"].removeprefix("openai/")]
        assert label["value"] == float(CRITIC.verdict(prompt, said))
        assert (label["kind"], label["source"], label["weight"]) == ("judge", "judge", 1.0)
        assert label["comment"] is None
    counted = proxy.rows("SELECT * FROM outcomes WHERE satisfaction IS NOT NULL")
    assert {row["satisfaction_kind"] for row in counted} == {"judge"}


def test_a_request_is_graded_in_one_call_blind_and_in_shuffled_order(
    upstream: Upstream, proxy: Proxy, sampled: dict[str, str]
) -> None:
    bodies = judge_bodies(upstream, "sum number")

    assert sorted(question(body) for body in bodies) == sorted(sampled.values())
    for body in bodies:
        told = "\n".join(str(message["content"]) for message in body["messages"])
        assert sorted(shown_answers(body).values()) == sorted(SAYS.values())
        for secret in (*SAYS, "openai", "served", *sampled):
            assert secret not in told
        assert body["temperature"] == 0.0
        assert body["response_format"]["json_schema"]["strict"] is True
    places = {list(shown_answers(body).values()).index(SAYS["huge"]) for body in bodies}
    assert places == {0, 1, 2}


def test_the_cost_of_grading_is_shown_apart(proxy: Proxy, sampled: dict[str, str]) -> None:
    gradings = proxy.rows("SELECT * FROM gradings WHERE status = 'graded'")
    calls = proxy.rows("SELECT * FROM calls")

    for grading in gradings:
        assert grading["cost"] == pytest.approx(TOKENS * JUDGE_PRICE)
        assert (grading["judge"], grading["answers"]) == (JUDGE, 3)
        assert (grading["prompt_tokens"], grading["completion_tokens"]) == (10, 5)
    assert {call["candidate"] for call in calls} == set(CANDIDATE_PRICES)
    for call in calls:
        assert call["cost"] == pytest.approx(TOKENS * CANDIDATE_PRICES[call["candidate"]])


def test_a_server_without_structured_output_is_asked(upstream: Upstream, tmp_path: Path) -> None:
    def plain(model: str, body: dict[str, Any]) -> Reply:
        return Reply(status=400) if "response_format" in body else script(model, body)

    upstream.script = plain
    upstream.requests.clear()
    made = quick(config(upstream, tmp_path), tmp_path, judge={"concurrent": 1})
    proxy = Proxy(made, tmp_path).start()
    try:
        with proxy.client() as client:
            asked_of(client, [f"sum {number}" for number in range(3)])
            proxy.wait_for_rows("SELECT * FROM gradings WHERE status = 'graded'", 3)
            counts = health(client)
    finally:
        proxy.stop()

    forms = ["response_format" in body for body in judge_bodies(upstream)]
    assert forms == [True, False, False, False]
    assert not [name for name in counts if name.startswith("judge")]
    assert len(proxy.rows("SELECT * FROM gradings")) == 3
