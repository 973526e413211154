"""`messplus up` on ports that others use: said before anything is loaded, and never taken over."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli import up
from litellm_messplus.cli.main import app
from tests.support.http_server import Answer, serving
from tests.support.patience import PATIENT
from tests.support.ports import free_port

FOLDER = Path(__file__).parents[2] / "examples" / "tiny_zoo"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


def refusal(port: int, zoo_port: int) -> str:
    given = ["--port", str(port), "--zoo-port", str(zoo_port), "--folder", str(FOLDER)]
    result = CliRunner().invoke(app, ["up", *given])
    assert isinstance(result.exception, SystemExit)
    told = str(result.exception.code)
    assert told.startswith("messplus: ")
    assert "\n" not in told
    return told


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*given: Any, **how: Any) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.usefixtures("nothing_starts")
def test_the_proxys_port_that_is_taken_is_named(taken: int, elsewhere: Path) -> None:
    told = refusal(taken, free_port())

    assert f"port {taken} cannot be served on" in told
    assert told.endswith("--port")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.usefixtures("nothing_starts")
def test_the_zoos_port_that_is_taken_is_named(taken: int) -> None:
    told = refusal(free_port(), taken)

    assert f"port {taken} cannot be served on" in told
    assert told.endswith("--zoo-port")


@pytest.mark.usefixtures("nothing_starts")
def test_both_cannot_be_the_same() -> None:
    port = free_port()

    assert refusal(port, port) == (
        f"messplus: --port and --zoo-port are both {port}; allowed: two ports"
    )


@pytest.mark.usefixtures("nothing_starts")
def test_what_is_no_port_is_refused() -> None:
    assert "port 70000 cannot be served on" in refusal(70_000, free_port())


def stranger(method: str, path: str) -> Answer:
    """Answers everything with 200, as many programs do."""
    return Answer({"status": "ok"})


def without_the_plugin(method: str, path: str) -> Answer:
    """Or under another key."""
    return Answer({}, status=401) if path.startswith("/messplus") else Answer({"status": "ok"})


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers took its port after it was looked at; ours are slow to start."""

    @contextmanager
    def running(command: list[str], environment: dict[str, str]) -> Iterator[Any]:
        slow = [sys.executable, "-c", f"import time; time.sleep({PATIENT})"]
        with subprocess.Popen(slow) as process:
            try:
                yield process
            finally:
                process.kill()

    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    monkeypatch.setattr(up, "require_free", lambda ports: None)
    monkeypatch.setattr(up, "_running", running)


@pytest.mark.usefixtures("late")
def test_another_program_is_not_taken_for_the_zoo() -> None:
    with serving(stranger) as port:
        told = refusal(free_port(), port)

    assert f"another program answers on port {port}" in told
    assert told.endswith("--zoo-port")


@pytest.mark.usefixtures("late")
def test_another_program_is_not_taken_for_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "_names", lambda answer, instance: True)
    with serving(stranger) as zoo_port, serving(without_the_plugin) as port:
        told = refusal(port, zoo_port)

    assert f"another program answers on port {port}" in told
    assert told.endswith("--port")


@pytest.mark.usefixtures("nothing_starts")
def test_outside_of_a_checkout_one_line_says_so(elsewhere: Path) -> None:
    result = CliRunner().invoke(app, ["up"])

    assert isinstance(result.exception, SystemExit)
    told = str(result.exception.code)
    assert told.endswith("proxy_config.yaml is not there: run this in a checkout, or give --folder")
    assert "\n" not in told
    assert list(elsewhere.iterdir()) == []


def test_the_demo_needs_a_proxy_and_no_checkout(elsewhere: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = CliRunner().invoke(app, ["demo", "--url", url, "--key", "sk-any"])

    assert isinstance(result.exception, SystemExit)
    assert str(result.exception.code) == (
        f"messplus: no proxy answers on {url}: start it with `make run`"
    )
