"""The committed models of `examples/agent`, its server's tool calls, and the whole comparison."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from examples.agent.evaluate import MODELS_DIRECTORY, evaluate
from examples.agent.tasks import Task, generate
from examples.agent.tools import TOOLS
from examples.tiny_zoo.server import build_app

NAMES = ["agent-small", "agent-large"]
REPOSITORY = Path(__file__).parents[2]
CHAT = "/v1/chat/completions"
TASK = Task({"figs": 3}, None, {"figs": 27})


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def server() -> Iterator[TestClient]:
    with TestClient(build_app(MODELS_DIRECTORY)) as client:
        yield client


def ask(*more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": TASK.question}, *more]
    return {"model": "agent-large", "messages": messages, "tools": TOOLS, **fields}


def test_weights_stay_small() -> None:
    sizes = [file.stat().st_size for file in MODELS_DIRECTORY.glob("*/*.safetensors")]

    assert len(sizes) == len(NAMES)
    assert sum(sizes) <= 2_000_000


def test_the_larger_model_solves_more_and_none_does_without_the_calculator() -> None:
    tasks = list(generate(60, seed=41))
    small, large = (evaluate(MODELS_DIRECTORY / name, tasks) for name in NAMES)

    assert 0.3 < small["overall"] < 0.8
    assert large["overall"] > 0.9
    assert max(small["without the calculator"], large["without the calculator"]) < 0.1


def test_the_readme_quotes_the_measured_table() -> None:
    measured = (MODELS_DIRECTORY / "table.md").read_text()

    assert measured in (MODELS_DIRECTORY.parent / "README.md").read_text()


def test_the_server_speaks_of_tools_as_openai_does(server: TestClient) -> None:
    first = server.post(CHAT, json=ask()).json()
    (choice,) = first["choices"]
    (call,) = choice["message"]["tool_calls"]

    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert call["function"] == {"name": "price", "arguments": '{"item": "figs"}'}

    result = {"role": "tool", "tool_call_id": call["id"], "content": "27"}
    second = server.post(CHAT, json=ask(choice["message"], result)).json()
    (call,) = second["choices"][0]["message"]["tool_calls"]

    assert json.loads(call["function"]["arguments"]) == {"expression": "3*27"}


@pytest.mark.end_to_end
def test_a_held_agent_stays_with_its_model_and_solves_tasks() -> None:
    command = [sys.executable, "-m", "examples.agent.run", "--tasks", "8", "--json"]
    ran = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    held, unheld = json.loads(ran.stdout)

    zoos = [report["zoo"] for report in (held, unheld)]
    assert zoos == ["agent-held", "agent-unheld"]
    assert held["switches"] == held["rescues"]
    assert unheld["rescues"] == 0
    for report in (held, unheld):
        assert report["solved"] >= 4
        assert report["calls"] >= 8 * 3
        assert report["cached"] > 0.3
        assert report["cost"] > 0
