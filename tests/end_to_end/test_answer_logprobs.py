"""With `answer_logprobs`, endpoints are asked for the log-probabilities of answers: the log has
what they show, and only the client that asked for them itself sees them. No request fails for
them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from litellm_messplus.prediction.answer import ANSWER_NUMBERS
from tests.support.proxy import Config, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

NAMED = """
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Reading
from litellm_messplus.runtime.stand_ins import replace

decide = Engine.decide


def named(self, question, *given):
    choice = decide(self, question, *given)
    size = question.prompt_characters
    wanted = next(name for name in question.candidates if len(name.split("/")[1]) == size)
    ranking = sorted(question.candidates, key=lambda name: name != wanted)
    alone = {"ranking": tuple(ranking), "explored": (), "is_exploration": False}
    return replace(choice, decision=replace(choice.decision, reads=question.may_go_on, **alone))


def reads(self, question, choice, answer):
    if choice.decision.ranking[0] == "hosted_vllm/middle":
        return Reading(0.74, 0.31, "openai/huge", 0.8)
    return Reading(0.74, 0.9)


Engine.decide, Engine.reads = named, reads

from litellm_messplus.plugin import instance
"""
"""The model is the one whose name is as long as the prompt; `middle` goes on to `huge`."""
HUGE, MIDDLE, O3 = "h" * 4, "m" * 6, "o3"
PLACES = [ANSWER_NUMBERS.index(name) for name in ANSWER_NUMBERS if "log-prob" in name]
PLACES.append(ANSWER_NUMBERS.index("share of unlikely tokens"))


def config(upstream: Upstream, folder: Path) -> Config:
    zoo = {"alpha": 0.8, "second_answer": "auto", "answer_logprobs": True}
    made = zoo_config(upstream.url, folder, zoo=zoo, flush_seconds=0.05)
    (folder / "named.py").write_text(NAMED)
    made["litellm_settings"]["callbacks"] = ["named.instance"]
    made["router_settings"] = {"num_retries": 0}
    for each, model in zip(
        made["model_list"], ("openai/o3", "hosted_vllm/middle", "openai/huge"), strict=True
    ):
        each["litellm_params"]["model"] = model
    return made


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    running = Proxy(config(upstream, folder), folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply("It is 4.", log_probabilities=(-0.5, -3.5))
    upstream.requests.clear()
    with proxy.client() as connected:
        yield connected


def logged(proxy: Proxy, answer: httpx.Response, count: int = 1) -> list[list[float]]:
    """The numbers of log-probabilities of each call of a request."""
    query = "SELECT * FROM calls WHERE request_id = ? ORDER BY position"
    found = proxy.wait_for_rows(query, count, answer.headers["x-messplus-request-id"])
    surfaces = [np.frombuffer(row["answer_surface"], "<f4") for row in found]
    return [[float(surface[place]) for place in PLACES] for surface in surfaces]


def asked(upstream: Upstream) -> list[Any]:
    return [body.get("logprobs") for body in upstream.requests]


def test_the_log_has_what_they_show_and_the_client_does_not_see_them(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    answer = ask(client, HUGE)

    assert answer.json()["choices"][0]["message"]["content"] == "It is 4."
    assert "logprob" not in answer.text
    assert asked(upstream) == [True]
    assert logged(proxy, answer) == [[-2.0, -3.5, 0.5]]


def test_a_client_that_asks_for_them_gets_them(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    answer = ask(client, HUGE, logprobs=True, top_logprobs=1)

    tokens = answer.json()["choices"][0]["logprobs"]["content"]
    assert [token["logprob"] for token in tokens] == [-0.5, -3.5]
    assert upstream.requests[0]["top_logprobs"] == 1
    assert logged(proxy, answer) == [[-2.0, -3.5, 0.5]]


def test_a_client_that_asks_for_none_is_heard(client: httpx.Client, upstream: Upstream) -> None:
    assert "logprob" not in ask(client, HUGE, logprobs=False).text
    assert asked(upstream) == [False]


def test_a_vllm_server_is_asked_and_both_answers_are_logged_with_them(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    answer = ask(client, MIDDLE)

    assert answer.headers["x-messplus-first-model"] == "hosted_vllm/middle"
    assert "logprob" not in answer.text
    assert asked(upstream) == [True, True]
    assert logged(proxy, answer, 2) == [[-2.0, -3.5, 0.5]] * 2


def test_a_model_that_litellm_knows_not_to_give_them_is_not_asked(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    answer = ask(client, O3)

    assert answer.status_code == 200, answer.text
    assert asked(upstream) == [None]
    assert np.isnan(logged(proxy, answer)).all()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"stream": True}),
        ("/v1/messages", {"max_tokens": 9}),
    ],
    ids=["streamed", "Anthropic messages"],
)
def test_nothing_else_is_asked(
    client: httpx.Client, upstream: Upstream, path: str, body: dict[str, Any]
) -> None:
    chat = {"model": "zoo", "messages": [{"role": "user", "content": HUGE}]}
    answer = client.post(path, json={**chat, **body})

    assert answer.status_code == 200, answer.text
    assert "logprob" not in answer.text
    assert asked(upstream) == [None]


@pytest.mark.counts("logprobs_refused")
@pytest.mark.parametrize(("model", "status"), [("huge", 400), ("middle", 403)])
def test_one_that_refuses_them_answers_the_same_request_without_and_is_not_asked_again(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, model: str, status: int
) -> None:
    """By LiteLLM's retry, though its settings say `num_retries: 0`."""
    refusing = Reply(status=status, failure="Logprobs is not enabled for this model")
    upstream.script = lambda model, body: refusing if body.get("logprobs") else Reply()
    answers = [ask(client, model[0] * len(model)) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 200], answers[0].text
    sent = [body.get("logprobs") for body in upstream.requests if body["model"] == model]
    assert sent == [True, None, None]
    assert np.isnan(logged(proxy, answers[0])[0]).all()
    assert client.get("/messplus/health").json()["logprobs_refused"] >= 1


def test_what_a_client_got_wrong_itself_is_not_tried_again(
    client: httpx.Client, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=400, failure="logprobs: too many")
    assert ask(client, HUGE, logprobs=True, top_logprobs=99).status_code == 400
    assert len(upstream.requests) == 1
