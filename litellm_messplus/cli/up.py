"""`messplus up`: the tiny zoo's server and the LiteLLM proxy, started and stopped together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import httpx
from rich.console import Console

from litellm_messplus.cli import keys

START_SECONDS = 180.0
STOP_SECONDS = 30.0

console = Console(stderr=True, highlight=False)


def run(folder: Path, *, port: int, zoo_port: int) -> int:
    """Serve until a signal, or until one of the two ends; returns the exit status.

    Raises SystemExit with what to do where the tiny zoo is not there.
    """
    config = folder / "proxy_config.yaml"
    if not config.is_file():
        raise SystemExit(
            f"messplus: {config} is not there: run this in a checkout, or give --folder"
        )
    environment = {
        **os.environ,
        keys.VARIABLE: keys.find_or_make(),
        "TINY_ZOO_URL": f"http://127.0.0.1:{zoo_port}/v1",
    }
    Path("var").mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, _interrupt)
    zoo = [sys.executable, "-m", "examples.tiny_zoo.server", "--port", str(zoo_port)]
    proxy = [str(Path(sys.executable).parent / "litellm"), "--config", str(config)]
    try:
        with _running(zoo, environment) as zoo_process:
            _wait(zoo_process, f"http://127.0.0.1:{zoo_port}/health", "the tiny zoo")
            proxy += ["--port", str(port), "--host", "127.0.0.1"]
            with _running(proxy, environment) as proxy_process:
                url = f"http://127.0.0.1:{port}"
                _wait(proxy_process, f"{url}/health/liveliness", "the proxy")
                _greet(url)
                return _until_one_ends(zoo_process, proxy_process)
    except KeyboardInterrupt:
        return 0


def _greet(url: str) -> None:
    console.print(
        f"\n[bold]The proxy serves [cyan]tiny-zoo[/cyan] on {url}[/bold]\n"
        f"  master key  {keys.VARIABLE if os.environ.get(keys.VARIABLE) else keys.FILE}\n"
        "  database    var/messplus.db\n"
        "  try it      .venv/bin/messplus demo   (in a second terminal)\n"
        "  stop        Ctrl-C\n"
    )


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"messplus: {name} ended at its start, status {process.returncode}")
        try:
            if httpx.get(url, timeout=2.0).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit(f"messplus: {name} did not answer on {url} within {START_SECONDS:.0f} s")


def _until_one_ends(*processes: subprocess.Popen[bytes]) -> int:
    while True:
        for process in processes:
            status = process.poll()
            if status is not None:
                return status
        time.sleep(0.2)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
