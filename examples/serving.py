"""A proxy on an example, with an empty history of its own, which ends with the program."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
START_SECONDS = 240.0
STOP_SECONDS = 60.0
LAST_WORDS = 2_000
"""Characters of a failed proxy's output that are shown."""


@contextmanager
def own_proxy(example: Path) -> Iterator[tuple[str, str]]:
    """Serve the models of the folder ``example``, and the proxy; yields its URL and master key.

    Raises SystemExit with the proxy's last words where it does not start.
    """
    port, zoo_port = _free_ports()
    key = f"sk-{secrets.token_urlsafe(32)}"
    command = [sys.executable, "-m", "examples.up", "--folder", str(example)]
    command += ["--port", str(port), "--zoo-port", str(zoo_port)]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "LITELLM_MASTER_KEY": key,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "proxy.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(process, url, key, log)
            yield url, key
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_ports() -> tuple[int, int]:
    """Find two ports; both are held until both are known."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _wait(process: subprocess.Popen[bytes], url: str, key: str, log: Path) -> None:
    """Return once the plugin's own health answers."""
    headers = {"authorization": f"Bearer {key}"}
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            found = httpx.get(f"{url}/messplus/health", headers=headers, timeout=5.0)
            if found.status_code == HTTPStatus.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"the proxy does not start:\n{log.read_text(errors='replace')[-LAST_WORDS:]}")
