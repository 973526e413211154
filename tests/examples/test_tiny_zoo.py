"""The committed models of the tiny zoo, and its server driven over HTTP."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.tiny_zoo.evaluate import MODELS_DIRECTORY, evaluate
from examples.tiny_zoo.tasks import generate, is_satisfactory
from tests.support.patience import PATIENT, until

NAMES = ["tiny-small", "tiny-medium", "tiny-large"]
REPOSITORY = Path(__file__).parents[2]
CHAT = "/v1/chat/completions"
EASY = "reverse: kqzm"
EASIEST = ("sort", 1)


def ask(prompt: Any, **fields: Any) -> dict[str, Any]:
    """A chat request's body for one user message."""
    return {
        "model": "tiny-large",
        "messages": [{"role": "user", "content": prompt}],
        **fields,
    }


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.Client]:
    """A client of a server process that must end cleanly on SIGTERM."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "examples.tiny_zoo.server", "--port", str(port)]
    with (
        subprocess.Popen(command, cwd=REPOSITORY) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENT) as client,
    ):
        try:
            wait_until_healthy(client, process)
            yield client
        finally:
            process.send_signal(signal.SIGTERM)
            ended = process.wait(timeout=PATIENT)
    # uvicorn shuts down in order and then raises the signal it received again.
    assert ended in (0, -signal.SIGTERM)


def wait_until_healthy(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers; fail when the process has ended."""

    def is_healthy() -> bool:
        assert process.poll() is None, "the server did not start"
        try:
            return client.get("/health").raise_for_status().is_success
        except httpx.TransportError:
            return False

    until(is_healthy)


def stream(client: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a streamed reply, after checking how they are framed."""
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_weights_stay_small() -> None:
    sizes = [file.stat().st_size for file in MODELS_DIRECTORY.glob("*/*.safetensors")]
    assert len(sizes) == len(NAMES)
    assert sum(sizes) <= 12_000_000


@pytest.mark.usefixtures("one_thread")
def test_larger_models_satisfy_more() -> None:
    tasks = list(generate(120, seed=41))
    small, medium, large = (evaluate(MODELS_DIRECTORY / name, tasks)["overall"] for name in NAMES)
    assert 0.2 < small < medium - 0.05
    assert medium < large - 0.05
    assert large < 1


def test_readme_quotes_the_measured_table() -> None:
    measured = (MODELS_DIRECTORY / "table.md").read_text()
    assert measured in (MODELS_DIRECTORY.parent / "README.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_answers_a_chat(server: httpx.Client, name: str) -> None:
    task = next(task for task in generate(500, seed=5) if (task.family, task.difficulty) == EASIEST)
    reply = server.post(CHAT, json=ask(task.prompt, model=name)).json()
    assert reply["model"] == name
    assert reply["object"] == "chat.completion"
    choice = reply["choices"][0]
    assert choice["message"]["role"] == "assistant"
    assert is_satisfactory(task, choice["message"]["content"])
    assert choice["finish_reason"] == "stop"
    assert reply["usage"] == {
        "prompt_tokens": len(task.prompt) + 1,
        "completion_tokens": len(task.answer) + 1,
        "total_tokens": len(task.prompt) + len(task.answer) + 2,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def test_streams_the_same_chat(server: httpx.Client) -> None:
    whole = server.post(CHAT, json=ask(EASY)).json()
    chunks = stream(server, CHAT, ask(EASY, stream_options={"include_usage": True}))
    *pieces, last, usage = chunks
    assert pieces[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    text = [chunk["choices"][0]["delta"]["content"] for chunk in pieces]
    assert "".join(text) == whole["choices"][0]["message"]["content"] == "mzqk"
    assert len(text) == 5
    assert last["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"] == whole["usage"]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


@pytest.mark.parametrize(
    "body",
    [
        {"model": "tiny-large"},
        ask(EASY, temperature=-1),
        ask("a" * 600),
        ask(EASY, model="scripted-judge"),
    ],
)
def test_refuses_malformed_requests(server: httpx.Client, body: dict[str, Any]) -> None:
    response = server.post(CHAT, json=body)
    assert response.status_code == 400
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
