"""`make run` on ports that others use: said before anything is loaded, and never taken over."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples import up
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
    with pytest.raises(SystemExit) as refused:
        up.run(FOLDER, port=port, zoo_port=zoo_port)
    told = str(refused.value)
    assert told.startswith("messplus: ")
    assert "\n" not in told
    return told


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*given: Any, **how: Any) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.usefixtures("nothing_starts")
def test_the_zoos_port_that_is_taken_is_named(taken: int) -> None:
    told = refusal(free_port(), taken)

    assert f"port {taken} cannot be served on" in told
    assert told.endswith("--zoo-port")


def stranger(method: str, path: str) -> Answer:
    """Answers everything with 200, as many programs do."""
    return Answer({"status": "ok"})


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


@pytest.mark.usefixtures("nothing_starts")
def test_outside_of_a_checkout_one_line_says_so(elsewhere: Path) -> None:
    with pytest.raises(SystemExit, match="is not there: run this in a checkout, or give --folder"):
        up.run(Path("examples/tiny_zoo"), port=4000, zoo_port=8001)
    assert list(elsewhere.iterdir()) == []
