"""``python -m examples.up``: the tiny zoo's server and the LiteLLM proxy, started and stopped
together."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import httpx
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from litellm_messplus.cli import options

HOST = "127.0.0.1"
START_SECONDS = 180.0
STOP_SECONDS = 30.0
USUAL_SECONDS = 15
"""How long the start takes, about; the first one on a machine twice as long."""
DEFAULT_URL = f"http://{HOST}:4000"
"""Where the demo looks."""
DEMO = "tiny_zoo"
"""The folder of what the demo asks."""

console = Console(stderr=True, highlight=False)


def up(
    port: Annotated[int, typer.Option(help="The port of the LiteLLM proxy.")] = 4000,
    zoo_port: Annotated[int, typer.Option(help="The port of the tiny zoo's server.")] = 8001,
    folder: Annotated[Path, typer.Option(help="The folder of the example.")] = Path(
        "examples/tiny_zoo"
    ),
) -> None:
    """Serve the tiny zoo behind a LiteLLM proxy with the plugin, until Ctrl-C."""
    raise typer.Exit(run(folder, port=port, zoo_port=zoo_port))


# The ports, before anything is loaded.


def require_free(ports: Mapping[str, int]) -> None:
    """Check that the port of each option is free. Raises SystemExit with the one that is not:
    LiteLLM would take another at random in place of 4000."""
    if len(set(ports.values())) < len(ports):
        raise SystemExit(
            f"messplus: {' and '.join(ports)} are both {next(iter(ports.values()))}; allowed: two "
            "ports"
        )
    for option, port in ports.items():
        reason = _why_not(port)
        if reason is not None:
            raise SystemExit(
                f"messplus: port {port} cannot be served on ({reason}): stop what uses it, or give "
                f"another with {option}"
            )


def _why_not(port: int) -> str | None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except (OSError, OverflowError) as error:
            return getattr(error, "strerror", None) or str(error)
    return None


def run(folder: Path, *, port: int, zoo_port: int) -> int:
    """Serve until a signal, or until one of the two ends; returns the exit status.

    Raises SystemExit with what to do where the tiny zoo is not there, where a port is taken, and
    where something else answers there in the end.
    """
    config = folder / "proxy_config.yaml"
    if not config.is_file():
        raise SystemExit(
            f"messplus: {config} is not there: run this in a checkout, or give --folder"
        )
    require_free({"--port": port, "--zoo-port": zoo_port})
    key, instance = find_or_make_key(), secrets.token_hex(8)
    environment = {
        **os.environ,
        options.VARIABLE: key,
        "TINY_ZOO_URL": f"http://{HOST}:{zoo_port}/v1",
    }
    Path("var").mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, _interrupt)
    zoo = [sys.executable, "-m", "examples.tiny_zoo.server", "--port", str(zoo_port)]
    zoo += ["--models-dir", str(folder.resolve() / "models"), "--instance", instance]
    proxy = [str(Path(sys.executable).parent / "litellm"), "--config", str(config)]
    console.print(f"Serving {folder.name} behind LiteLLM: ready in about {USUAL_SECONDS} seconds.")
    try:
        with _bar() as bar, _running(zoo, environment) as zoo_process:
            task = bar.add_task("the models", total=2)
            answer = _wait(zoo_process, f"http://{HOST}:{zoo_port}/health", "the tiny zoo")
            if not _names(answer, instance):
                raise _another(zoo_port, "--zoo-port")
            bar.update(task, advance=1, description="LiteLLM with the plugin")
            proxy += ["--port", str(port), "--host", HOST]
            with _running(proxy, environment) as proxy_process:
                url = f"http://{HOST}:{port}"
                _wait(proxy_process, f"{url}/health/liveliness", "the proxy")
                if not _takes(url, key):
                    raise _another(port, "--port")
                bar.stop()
                _greet(url, folder)
                return _until_one_ends(zoo_process, proxy_process)
    except KeyboardInterrupt:
        return 0


def find_or_make_key() -> str:
    """Return the master key of the environment, else of the file, which is made on the first
    start."""
    known = options.known()
    if known is not None:
        return known
    key = f"sk-{secrets.token_urlsafe(32)}"
    options.FILE.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(options.FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
    return key


def _names(answer: httpx.Response, instance: str) -> bool:
    """Tell whether the answer is of the server that was started under this name."""
    try:
        found = answer.json()
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("instance") == instance


def _takes(url: str, key: str) -> bool:
    """Tell whether a proxy with the plugin answers there, and takes our key."""
    try:
        answer = httpx.get(
            f"{url}/messplus/health", headers={"authorization": f"Bearer {key}"}, timeout=30.0
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == HTTPStatus.OK


def _another(port: int, option: str) -> SystemExit:
    return SystemExit(
        f"messplus: another program answers on port {port}: stop it, or give another port with "
        f"{option}"
    )


def _greet(url: str, folder: Path) -> None:
    where = "" if url == DEFAULT_URL else f" --url {url}"
    demo = f".venv/bin/python -m examples.tiny_zoo.demo{where}" if where else "make demo"
    trial = f"{demo}   (in a second terminal)"
    if folder.name != DEMO:
        trial = f"see {folder}/README.md"
    console.print(
        f"\n[bold]The proxy serves [cyan]{folder.name}[/cyan] on {url}[/bold]\n"
        f"  master key  {options.VARIABLE if os.environ.get(options.VARIABLE) else options.FILE}\n"
        "  database    var/messplus.db\n"
        f"  try it      {trial}\n"
        f"  page        {url}/messplus/ui\n"
        f"  sign in     .venv/bin/messplus status --ui{where}   (prints a link to the page)\n"
        "  stop        Ctrl-C\n",
        soft_wrap=True,
    )


def _bar() -> Progress:
    """Build a bar of the programs that are ready; what they print scrolls above it."""
    columns = BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True)


def _pass_on(process: subprocess.Popen[bytes]) -> None:
    """Print what a program prints, until it ends."""
    for line in process.stdout or ():
        shown = Text.from_ansi(line.decode(errors="replace").rstrip("\n"))
        console.print(shown, soft_wrap=True, crop=False)


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    reader = threading.Thread(target=_pass_on, args=(process,), daemon=True)
    reader.start()
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
        reader.join(STOP_SECONDS)


def _wait(process: subprocess.Popen[bytes], url: str, name: str) -> httpx.Response:
    """Return the first answer with status 200, while the process is alive. Raises SystemExit."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"messplus: {name} ended at its start, status {process.returncode}")
        try:
            answer = httpx.get(url, timeout=2.0)
            if answer.status_code == HTTPStatus.OK and process.poll() is None:
                return answer
        except httpx.HTTPError:
            pass
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


if __name__ == "__main__":
    typer.run(up)
