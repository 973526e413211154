"""`examples/efforts`: a model that answers at once or thinks first, its server, and the figure."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from examples.efforts.__main__ import merged, table
from examples.efforts.tasks import CUPS, generate, generate_training, steps
from examples.efforts.train import EFFORTS, MODELS_DIRECTORY, NAME, answered
from examples.tiny_zoo.demo.report import Alone, Yardsticks
from examples.tiny_zoo.generation import TinyModel
from examples.tiny_zoo.server import build_app
from tests.examples.test_report import report_of

REPOSITORY = Path(__file__).parents[2]
CHAT = "/v1/chat/completions"
TASK = "ball: c ab ce de"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def server() -> Iterator[TestClient]:
    with TestClient(build_app(MODELS_DIRECTORY)) as client:
        yield client


def ask(effort: str | None, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": TASK}]
    return {"model": NAME, "messages": messages, "reasoning_effort": effort, **fields}


@given(st.sampled_from(CUPS), st.lists(st.permutations(CUPS), min_size=1, max_size=8))
def test_the_steps_follow_the_ball(cup: str, orders: list[list[str]]) -> None:
    swaps = [order[:2] for order in orders]
    written = steps(f"ball: {cup} {' '.join(map(''.join, swaps))}")
    under = {each: each == cup for each in CUPS}
    for step, (one, other) in zip(written.split(","), swaps, strict=True):
        assert under[step[0]]
        under[one], under[other] = under[other], under[one]
        assert under[step[1]]


def test_no_task_is_both_trained_on_and_asked() -> None:
    asked = {task.prompt for task in generate(500, seed=0)}

    assert asked.isdisjoint(task.prompt for task in generate_training(5_000, seed=0))


def test_weights_stay_small() -> None:
    assert (MODELS_DIRECTORY / NAME / "model.safetensors").stat().st_size <= 1_000_000


def test_the_readme_quotes_the_measured_table() -> None:
    measured = (MODELS_DIRECTORY / "table.md").read_text()

    assert measured in (MODELS_DIRECTORY.parent / "README.md").read_text()


@pytest.mark.parametrize(("family", "least", "most"), [("ball", 0.0, 0.6), ("count", 0.8, 1.0)])
def test_thinking_is_always_right_and_answering_at_once_where_one_look_is_enough(
    family: str, least: float, most: float
) -> None:
    model = TinyModel(MODELS_DIRECTORY / NAME)
    drawn = generate(150, seed=41)
    tasks = [task for task in drawn if (task.family, task.difficulty >= 4) == (family, True)]
    low, high = ([answered(model, task, effort) for task in tasks] for effort in EFFORTS)

    assert fmean(is_right for is_right, _ in high) > 0.95
    assert least <= fmean(is_right for is_right, _ in low) <= most
    assert all(brief < long / 4 for (_, brief), (_, long) in zip(low, high, strict=True))


def test_the_server_keeps_the_steps_apart_and_counts_them(server: TestClient) -> None:
    low = server.post(CHAT, json=ask("low")).json()
    high = server.post(CHAT, json=ask("high")).json()

    assert "reasoning_content" not in low["choices"][0]["message"]
    assert "completion_tokens_details" not in low["usage"]
    assert high["choices"][0]["message"] == {
        "role": "assistant",
        "content": "d",
        "reasoning_content": "cc,ce,ed",
    }
    assert high["usage"]["completion_tokens_details"] == {"reasoning_tokens": len("cc,ce,ed|")}
    assert high["usage"]["completion_tokens"] == len("cc,ce,ed|d") + 1


def test_no_effort_is_the_low_one(server: TestClient) -> None:
    answers = [server.post(CHAT, json=ask(effort)).json() for effort in (None, "low")]
    first, second = (answer["choices"][0]["message"] for answer in answers)

    assert first == second


def test_it_streams_the_same(server: TestClient) -> None:
    body = ask("high", stream=True)
    lines = server.post(CHAT, json=body).text.split("data: ")
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines[1:-1]]
    thoughts, words = (
        "".join(delta.get(part, "") for delta in deltas)
        for part in ("reasoning_content", "content")
    )

    assert (thoughts, words) == ("cc,ce,ed", "d")


def test_the_table_has_each_effort_their_replicas_and_what_was_routed() -> None:
    alone = {"low": Alone(0.5, 1.0), "high": Alone(1.0, 5.0)}
    report = report_of(yardsticks=Yardsticks(3.4, 2.0, None, alone))
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table(report))

    assert merged(report) == Alone(0.75, 3.0)
    for words in ("always low", "50.0 %", "0.2", "replicas", "0.6", "hindsight", "0.68", "routed"):
        assert words in capture.get()


@pytest.mark.end_to_end
def test_both_efforts_are_candidates_of_a_real_proxy() -> None:
    command = [sys.executable, "-m", "examples.efforts", "--requests", "40", "--json"]
    ran = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    report = json.loads(ran.stdout)

    low, high = (report["alone"][f"hosted_vllm/{NAME}, {effort} effort"] for effort in EFFORTS)
    assert low["satisfaction"] < high["satisfaction"]
    assert 0 < 2 * low["cost"] < high["cost"]
    assert report["unrouted"] + report["requests"] == 40
    assert set(report["model_mix"]) <= set(report["alone"])
