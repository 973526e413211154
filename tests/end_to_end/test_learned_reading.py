"""The engine learns from users' verdicts what bad answers look like, and replaces those alone: its
own reading, on a real proxy. How long replaced requests take is printed (`pytest -s`)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ALPHA = 0.9
REQUESTS = 300
AT_ONCE = 6
BEGUN = REQUESTS // 2
"""Requests until which the engine may still learn."""
KINDS = ("Add the two small numbers", "Prove the long theorem of seven lemmas")
REFUSES = (0.1, 0.5)
"""Share of the prompts of each kind that the small model refuses."""
WRONG = {"small": 0.05, "large": 0.03}
"""Share of the answers that look right and are not."""
PRICES = {"small": 1e-6, "large": 2e-5}
SECONDS = {"small": 0.1, "large": 0.2}
REFUSAL = "I'm sorry, but as an AI I cannot help with that"
FULL = "The answer is 12, since three times four is twelve."

_DRAWS = np.random.default_rng(31)
IS_REFUSED = _DRAWS.random(REQUESTS) < np.resize(REFUSES, REQUESTS)
IS_WRONG = {name: _DRAWS.random(REQUESTS) < share for name, share in WRONG.items()}


@dataclass(frozen=True)
class Served:
    """A request as its user saw it: who answered, in place of whom, and after how long."""

    number: int
    request_id: str
    model: str
    first: str | None
    text: str
    seconds: float

    @property
    def is_satisfied(self) -> bool:
        return self.text != REFUSAL and not IS_WRONG[self.model][self.number]


def says(model: str, body: dict[str, Any]) -> Reply:
    """Script the upstream: the small model refuses some prompts."""
    number = int(body["messages"][-1]["content"].split()[-1])
    refuses = model == "small" and IS_REFUSED[number]
    return Reply(REFUSAL if refuses else FULL, delay_seconds=SECONDS[model])


def use(client: httpx.Client, number: int) -> Served:
    """Ask, and judge the answer."""
    started = perf_counter()
    answer = ask(client, f"{KINDS[number % len(KINDS)]}: case {number}").raise_for_status()
    seconds = perf_counter() - started
    model, first = (
        None if name is None else name.removeprefix("openai/")
        for name in map(answer.headers.get, ("x-messplus-model", "x-messplus-first-model"))
    )
    assert model is not None
    text = answer.json()["choices"][0]["message"]["content"]
    given = answer.headers["x-messplus-request-id"]
    served = Served(number, given, model, first, text, seconds)
    verdict = {"id": given, "satisfied": served.is_satisfied}
    client.post("/messplus/feedback", json=verdict).raise_for_status()
    return served


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    upstream.script = says
    zoo = {"alpha": ALPHA, "second_answer": "auto"}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    config["model_list"] = [
        deployment("zoo", name, upstream.url, price) for name, price in PRICES.items()
    ]
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def served(proxy: Proxy) -> list[Served]:
    with proxy.client() as client, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: use(client, number), range(REQUESTS)))


@pytest.fixture(scope="module")
def replaced(served: list[Served]) -> list[Served]:
    return [each for each in served if each.first is not None]


def test_what_is_replaced_are_bad_answers(served: list[Served], replaced: list[Served]) -> None:
    assert len(replaced) > REQUESTS / 10
    assert {(each.first, each.model, each.text) for each in replaced} == {("small", "large", FULL)}
    refused = [each for each in replaced if IS_REFUSED[each.number]]
    assert len(refused) >= 0.95 * len(replaced)
    given = [each.text for each in served[BEGUN:]]
    assert given.count(REFUSAL) < IS_REFUSED[BEGUN:].sum() / 2


def test_alpha_is_held_though_the_small_model_answers_most_requests(served: list[Served]) -> None:
    """Alone it satisfies two of three."""
    assert sum(each.is_satisfied for each in served) >= (ALPHA - 0.02) * REQUESTS
    assert sum(each.model == "small" for each in served) > REQUESTS / 3


def test_each_is_logged_with_both_calls(proxy: Proxy, replaced: list[Served]) -> None:
    calls = "SELECT request_id, candidate FROM calls WHERE role = 'replaced'"
    rows = proxy.wait_for_rows(calls, len(replaced))
    assert {row["request_id"] for row in rows} == {each.request_id for each in replaced}
    assert {row["candidate"] for row in rows} == {"openai/small"}


def test_explain_says_why(proxy: Proxy, replaced: list[Served]) -> None:
    there = ["--url", proxy.url, "--key", proxy.master_key]
    told = CliRunner().invoke(app, ["requests", replaced[-1].request_id, *there]).stdout
    told = " ".join(told.split())
    assert "The answer of openai/small says" in told
    assert "openai/large answered instead." in told


def test_a_replaced_one_takes_two_calls_time(served: list[Served], replaced: list[Served]) -> None:
    kept = [each for each in served if each.first is None]
    for name, some in (("kept", kept), ("replaced", replaced)):
        median, late = np.quantile([each.seconds for each in some], (0.5, 0.95))
        share = len(some) / REQUESTS
        print(f"{name}: {share:.0%} of requests, median {median:.2f} s, p95 {late:.2f} s")
    assert all(each.seconds >= SECONDS[each.model] for each in kept)
    assert all(each.seconds >= sum(SECONDS.values()) for each in replaced)
