"""The committed models of `examples/agent`, its server's tool calls, and the whole comparison."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient

from examples.agent.evaluate import MODELS_DIRECTORY, evaluate
from examples.agent.report import Report
from examples.agent.run import compare
from examples.agent.session import Bill, Work
from examples.agent.tasks import Task, generate
from examples.agent.tools import TOOLS
from examples.tiny_zoo.server import build_app
from tests.support.ports import free_port

NAMES = ["agent-small", "agent-large"]
REPOSITORY = Path(__file__).parents[2]
CHAT = "/v1/chat/completions"
TASK = Task({"figs": 3}, None, {"figs": 27})


@pytest.fixture(scope="module")
def server() -> Iterator[TestClient]:
    with TestClient(build_app(MODELS_DIRECTORY)) as client:
        yield client


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: for models this small more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


def test_what_was_read_before_is_read_from_the_cache(server: TestClient) -> None:
    first = server.post(CHAT, json=ask(model="agent-small")).json()
    message = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "1", "content": "27"}
    grown = ask(message, result, model="agent-small")
    second = server.post(CHAT, json=grown).json()
    # The same prompt again: what goes on from it was taken on.
    cold = server.post(CHAT, json=grown).json()

    # All that was read and written, but for the token that ended the reply.
    read = first["usage"]["total_tokens"] - 1
    assert second["usage"]["prompt_tokens_details"] == {"cached_tokens": read}
    assert cold["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    functions = [
        reply["choices"][0]["message"]["tool_calls"][0]["function"] for reply in (second, cold)
    ]
    assert functions[0] == functions[1]


def test_a_call_of_a_tool_is_streamed_too(server: TestClient) -> None:
    with server.stream("POST", CHAT, json=ask(stream=True)) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    chunks = [json.loads(line)["choices"][0] for line in lines[:-1]]

    (calls,) = [chunk["delta"]["tool_calls"] for chunk in chunks if "tool_calls" in chunk["delta"]]
    assert calls[0]["index"] == 0
    assert calls[0]["function"]["name"] == "price"
    assert chunks[-1]["finish_reason"] == "tool_calls"


def test_without_tools_the_same_words_are_text(server: TestClient) -> None:
    body = {**ask(), "tools": None, "max_tokens": 5}
    message = server.post(CHAT, json=body).json()["choices"][0]["message"]

    assert isinstance(message["content"], str)
    assert "tool_calls" not in message


def test_arguments_that_are_no_json_are_refused(server: TestClient) -> None:
    function = {"name": "price", "arguments": "figs"}
    call = {"id": "1", "type": "function", "function": function}
    response = server.post(CHAT, json=ask({"role": "assistant", "tool_calls": [call]}))

    assert response.status_code == 400
    assert "arguments" in response.json()["error"]["message"]


def test_a_report_adds_up_and_counts_the_switches() -> None:
    held = Work(True, ["a", "b", "c"], ["1", "2"], ["small", "small"])
    changed = Work(False, ["d", "e", "f"], ["3", "4", "5"], ["small", "large", "small"])
    bills = [Bill(0.5, 100, 80, 0), Bill(1.0, 100, 0, 1)]

    report = Report.of("zoo", list(zip([held, changed], bills, strict=True)))

    assert (report.tasks, report.solved, report.calls, report.unrouted) == (2, 1, 6, 1)
    assert (report.switches, report.rescues) == (2, 1)
    assert (report.cached, report.cost) == (0.4, 1.5)


@pytest.mark.end_to_end
def test_a_held_agent_stays_with_its_model_and_solves_tasks() -> None:
    command = [sys.executable, "-m", "examples.agent.run", "--tasks", "8", "--json"]
    ran = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    whole, held, unheld = json.loads(ran.stdout)

    zoos = [report["zoo"] for report in (whole, held, unheld)]
    assert zoos == ["agent-tasks", "agent-held", "agent-unheld"]
    assert held["switches"] == held["rescues"]
    assert whole["switches"] == whole["rescues"]
    assert unheld["rescues"] == 0
    for report in (whole, held, unheld):
        assert report["solved"] >= 4
        assert report["calls"] >= 8 * 3
        assert report["cached"] > 0.3
        assert report["cost"] > 0


def test_without_a_proxy_one_line_says_so() -> None:
    url = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(SystemExit, match=f"no proxy answers on {url}"):
        compare(url, "sk-any", [TASK])
