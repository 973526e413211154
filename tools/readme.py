"""The two commands of the README, `make run` and `make demo`, on an installed wheel."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

START_SECONDS = 300.0
STOP_SECONDS = 60.0


def run_commands(python: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Serve the tiny zoo and run the demo, in a folder that has the examples alone. Raises
    SystemExit with the end of what they print if one fails."""
    port, zoo_port = free_port(), free_port()
    url, log = f"http://127.0.0.1:{port}", folder / "log"
    environment = {**environment, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    ports = ["--port", str(port), "--zoo-port", str(zoo_port)]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [python, "-m", "examples.up", *ports],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
        ) as served,
    ):
        try:
            wait_until_ready(url, served)
            subprocess.run(
                [python, "-m", "examples.tiny_zoo.demo", "--ask-all", "--url", url],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                check=True,
            )
        except (subprocess.CalledProcessError, TimeoutError) as error:
            raise SystemExit(
                f"release: {error}\n{log.read_text(errors='replace')[-4000:]}"
            ) from None
        finally:
            served.terminate()
            served.wait(STOP_SECONDS)


def wait_until_ready(url: str, served: "subprocess.Popen[bytes]") -> None:
    """Return once requests are routed. Raises TimeoutError where that does not come."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and served.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/messplus/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise TimeoutError(f"{url} does not route")


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
