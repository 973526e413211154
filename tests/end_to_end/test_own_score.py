"""A score of the operator's own is asked for each answer, and logged with its other numbers; one
that it says is bad may be replaced. Where it fails, requests go on without it."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from litellm_messplus.prediction.answer import ANSWER_NUMBERS, OWN_SCORE
from tests.support.proxy import Config, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

OWN = """
def score(prompt: str, answer: str) -> float:
    if "fail" in prompt:
        raise RuntimeError("the score's own error")
    return -0.75 if answer.endswith("wrong") and "sum" in prompt else 0.25
"""
READS = """
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Reading
from litellm_messplus.prediction.answer import ANSWER_NUMBERS, OWN_SCORE
from litellm_messplus.runtime.stand_ins import replace

decide, SCORE = Engine.decide, ANSWER_NUMBERS.index(OWN_SCORE)


def always_huge(self, question, *given):
    choice = decide(self, question, *given)
    ranking = sorted(question.candidates, key=lambda name: name != "openai/huge")
    unseen = ("openai/tiny",) if not question.may_go_on else ()
    alone = {"ranking": tuple(ranking), "explored": unseen, "is_exploration": bool(unseen)}
    return replace(choice, decision=replace(choice.decision, reads=question.may_go_on, **alone))


def reads(self, question, choice, answer):
    if answer[SCORE] < 0.0:
        return Reading(0.74, 0.31, "openai/middle", 0.8)
    return Reading(0.74, 0.9)


Engine.decide, Engine.reads = always_huge, reads

from litellm_messplus.plugin import instance
"""
"""`huge` serves; a stream is answered by `tiny` unseen, too."""
PLACE = ANSWER_NUMBERS.index(OWN_SCORE)


def config(upstream: Upstream, folder: Path) -> Config:
    zoo = {"alpha": 0.8, "second_answer": "auto", "answer_score": "own_scoring:score"}
    made = zoo_config(upstream.url, folder, zoo=zoo, flush_seconds=0.05)
    (folder / "own_scoring.py").write_text(OWN)
    (folder / "reading_scores.py").write_text(READS)
    made["litellm_settings"]["callbacks"] = ["reading_scores.instance"]
    return made


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    places = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    running = Proxy(config(upstream, folder), folder, environment={"PYTHONPATH": places}).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    words = {"huge": "it is wrong", "middle": "it is right", "tiny": "it is wrong"}
    upstream.script = lambda model, body: Reply(words[model])
    with proxy.client() as connected:
        yield connected


def logged(proxy: Proxy, answer: httpx.Response, count: int) -> dict[str, float]:
    """The score of each call of a request, by candidate."""
    query = "SELECT * FROM calls WHERE request_id = ? ORDER BY position"
    found = proxy.wait_for_rows(query, count, answer.headers["x-messplus-request-id"])
    return {
        row["candidate"].removeprefix("openai/"): float(
            np.frombuffer(row["answer_surface"], "<f4")[PLACE]
        )
        for row in found
    }


def test_one_that_it_says_is_bad_is_replaced_and_both_are_scored(
    client: httpx.Client, proxy: Proxy
) -> None:
    answer = ask(client, "a sum")

    assert answer.json()["choices"][0]["message"]["content"] == "it is right"
    assert answer.headers["x-messplus-first-model"] == "openai/huge"
    assert logged(proxy, answer, 2) == {"huge": -0.75, "middle": 0.25}


def test_one_that_it_says_is_good_is_kept(client: httpx.Client, proxy: Proxy) -> None:
    answer = ask(client, "a tale")

    assert "x-messplus-first-model" not in answer.headers
    assert logged(proxy, answer, 1) == {"huge": 0.25}


def test_streams_and_unseen_calls_are_scored_too(client: httpx.Client, proxy: Proxy) -> None:
    answer = ask(client, "a sum", stream=True)

    assert answer.status_code == 200
    assert logged(proxy, answer, 2) == {"huge": -0.75, "tiny": -0.75}


@pytest.mark.counts("scores_failed")
def test_where_it_fails_the_request_goes_on_without(client: httpx.Client, proxy: Proxy) -> None:
    answer = ask(client, "fail at this sum")

    assert answer.json()["choices"][0]["message"]["content"] == "it is wrong"
    assert np.isnan(logged(proxy, answer, 1)["huge"])
    assert client.get("/messplus/health").json()["scores_failed"] >= 1
