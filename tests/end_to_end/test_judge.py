"""A judge grades in the background of a real proxy: on a sample, blind, and within its bounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.labels.buying import is_drawn
from tests.support.judge import JUDGE, ScriptedJudge, question, shown_answers
from tests.support.patience import PATIENT, until
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
    asked = question(body)
    if "nonsense" in asked:
        return Reply("Let us talk about something else.")
    if "slow" in asked:
        return Reply(CRITIC.reply(body), delay_seconds=24.0)
    return Reply(f"```json\n{CRITIC.reply(body)}\n```")


def config(upstream: Upstream, folder: Path, judge: Config, rate: float = 1.0) -> Config:
    """Every request is explored, so that each has three answers, all of them known."""
    buying = {"how": "grade", "judge": JUDGE, **judge}
    zoo = {**PAPER, "c": 1e6, "buy_labels": buying, "label_rate": rate}
    made = zoo_config(upstream.url, folder, zoo=zoo, flush_seconds=0.05)
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


def until_counted(client: httpx.Client, name: str, count: int) -> None:
    until(lambda: health(client).get(name, 0) >= count, lambda: str(health(client)))


def judge_bodies(upstream: Upstream, word: str = "") -> list[dict[str, Any]]:
    """What the judge was sent about questions with a word in them."""
    bodies = [body for body in list(upstream.requests) if body["model"] == JUDGE]
    return [body for body in bodies if word in question(body)]


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    upstream.script = script
    made = config(upstream, folder, {"timeout_seconds": 10.0}, rate=0.5)
    running = Proxy(quick(made, folder, judge={"patience_seconds": 30.0}), folder).start()
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


def test_every_answer_of_the_sample_has_the_judges_label(
    proxy: Proxy, sampled: dict[str, str]
) -> None:
    labels = proxy.rows("SELECT * FROM labels JOIN calls USING (call_id) ORDER BY call_id")

    assert len(labels) == 3 * len(sampled)
    for label in labels:
        prompt = sampled[label["request_id"]]
        said = SAYS[label["candidate"].removeprefix("openai/")]
        assert label["value"] == float(CRITIC.verdict(prompt, said))
        assert (label["kind"], label["source"], label["weight"]) == ("judge", "judge", 1.0)
        assert label["comment"] is None
    counted = proxy.rows("SELECT * FROM request_outcomes WHERE satisfaction IS NOT NULL")
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
    (day,) = proxy.rows("SELECT SUM(cost) AS cost, SUM(graded) AS graded FROM gradings_per_day")

    for grading in gradings:
        assert grading["cost"] == pytest.approx(TOKENS * JUDGE_PRICE)
        assert (grading["judge"], grading["answers"]) == (JUDGE, 3)
        assert (grading["prompt_tokens"], grading["completion_tokens"]) == (10, 5)
    assert day["cost"] == pytest.approx(len(gradings) * TOKENS * JUDGE_PRICE)
    assert {call["candidate"] for call in calls} == set(CANDIDATE_PRICES)
    for call in calls:
        assert call["cost"] == pytest.approx(TOKENS * CANDIDATE_PRICES[call["candidate"]])


def labelled(proxy: Proxy) -> set[str]:
    return {row["request_id"] for row in proxy.rows("SELECT request_id FROM labels")}


@pytest.mark.counts("judge_nonsense")
def test_nonsense_gives_no_label_is_counted_and_paid(
    proxy: Proxy, client: httpx.Client, sampled: dict[str, str]
) -> None:
    asked = asked_of(client, [f"nonsense {number}" for number in range(6)])
    expected = {name for name in asked if is_drawn(0, name, 0.5)}

    until_counted(client, "judge_nonsense", len(expected))
    query = "SELECT * FROM gradings WHERE status = 'nonsense'"
    found = proxy.wait_for_rows(query, len(expected))

    assert {row["request_id"] for row in found} == expected
    for row in found:
        assert row["cost"] == pytest.approx(TOKENS * JUDGE_PRICE)
        assert row["error"]
    assert labelled(proxy).isdisjoint(asked)


@pytest.mark.counts("judge_failures")
def test_a_judge_that_times_out_gives_no_label_and_what_waited_too_long_is_left_out(
    proxy: Proxy, client: httpx.Client, sampled: dict[str, str]
) -> None:
    asked = asked_of(client, [f"slow {number}" for number in range(6)])
    expected = {name for name in asked if is_drawn(0, name, 0.5)}

    until_counted(client, "judge_left_out", len(expected))
    failed = proxy.rows("SELECT * FROM gradings WHERE status = 'failure'")

    # Those behind may run out of patience without having been tried.
    assert {row["request_id"] for row in failed} <= expected
    assert bool(failed) == bool(expected)
    assert len(failed) == health(client).get("judge_failures", 0)
    assert labelled(proxy).isdisjoint(asked)


def test_after_sigkill_the_days_budget_is_what_it_was(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script = script
    judge = {"gradings_per_day": 5, "budget_per_day": 10.0}
    proxy = Proxy(config(upstream, tmp_path, judge), tmp_path).start()
    with proxy.client() as client:
        asked_of(client, [f"before {number}" for number in range(8)])
        until_counted(client, "judge_over_budget", 3)
        proxy.wait_for_rows("SELECT * FROM gradings", 5)
    proxy.kill()

    proxy.start()
    try:
        with proxy.client() as client:
            asked_of(client, [f"after {number}" for number in range(3)])
            until_counted(client, "judge_over_budget", 3)
            assert ask(client).status_code == 200
    finally:
        proxy.stop()

    assert len(proxy.rows("SELECT * FROM gradings")) == 5
    assert judge_bodies(upstream, "after") == []


def test_a_judge_that_contradicts_the_users_stops_counting_and_says_so(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.script = script
    proxy = Proxy(config(upstream, tmp_path, {}), tmp_path).start()
    with proxy.client() as client:
        for request_id, prompt in asked_of(client, [f"sum {n}" for n in range(40)]).items():
            said = CRITIC.verdict(prompt, SAYS["huge"])  # the user saw the largest one's answer
            verdict = {"id": request_id, "satisfied": not said}
            assert client.post("/messplus/feedback", json=verdict).status_code == 200
        proxy.wait_for_rows("SELECT * FROM labels WHERE kind = 'judge'", 3 * 40)
    proxy.stop()

    proxy.start()  # which reads the agreement, as every minute does
    try:
        with proxy.client() as client:
            (request_id,) = asked_of(client, ["sum 40"])
            query = "SELECT * FROM labels WHERE request_id = ?"
            labels = proxy.wait_for_rows(query, 3, request_id)
    finally:
        proxy.stop()

    assert {label["weight"] for label in labels} == {0.0}
    query = "SELECT satisfaction FROM request_outcomes WHERE request_id = ?"
    assert proxy.rows(query, request_id) == [{"satisfaction": None}]
    assert proxy.log.count("stop counting") == 1


def test_a_server_that_knows_no_structured_output_is_asked_without(
    upstream: Upstream, tmp_path: Path
) -> None:
    def plain(model: str, body: dict[str, Any]) -> Reply:
        return Reply(status=400) if "response_format" in body else script(model, body)

    upstream.script = plain
    upstream.requests.clear()
    proxy = Proxy(config(upstream, tmp_path, {"concurrent": 1}), tmp_path).start()
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


@pytest.mark.parametrize("judge", ["zoo", "nobody"])
def test_a_judge_that_cannot_be_one_ends_the_start(
    upstream: Upstream, tmp_path: Path, judge: str
) -> None:
    proxy = Proxy(config(upstream, tmp_path, {"judge": judge}), tmp_path)

    try:
        status = proxy.launch().wait(PATIENT)
    finally:
        proxy.kill()

    assert status != 0
    assert "messplus.zoos.zoo.buy_labels.judge" in proxy.log
    assert f"given '{judge}'" in proxy.log
    assert f"there: {JUDGE}" in proxy.log
