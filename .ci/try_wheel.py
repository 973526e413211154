"""Try an installed wheel: what it brings along, its command, and one routed request with feedback.

    python try_wheel.py [DATABASE]

Run by the Python of a fresh environment, outside of the checkout, or the checkout would be tried.
DATABASE is a value of `messplus.database`; a new SQLite file if left out. The models are stand-ins
of LiteLLM's own (`mock_response`), so nothing outside this machine is asked.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib import resources
from pathlib import Path
from typing import Any

START_SECONDS = 300.0
BESIDE = Path(sys.executable).parent
BROUGHT = ("py.typed", "page/static/index.html", "migrations/env.py", "migrations/versions")
ENVIRONMENT = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def main() -> None:
    check_files()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, "messplus", "--help")
        database = sys.argv[1] if len(sys.argv) > 1 else f"sqlite+aiosqlite:///{folder}/messplus.db"
        serve(folder, database)
        found = json.loads(run(folder, "messplus", "status", "--database", database, "--json"))
    print(f"tried: {len(found['levels'])} promise in {database.partition(':')[0]}")


def check_files() -> None:
    """Stop where the package is the checkout's, or lacks a file that is no Python module."""
    package = Path(str(resources.files("litellm_messplus")))
    if not package.is_relative_to(sys.prefix):
        raise SystemExit(f"not installed here, but imported from {package}")
    missing = [name for name in BROUGHT if not (package / name).exists()]
    if missing:
        raise SystemExit(f"the wheel lacks {', '.join(missing)}")


def run(folder: Path, command: str, *arguments: str) -> str:
    done = subprocess.run(
        [str(BESIDE / command), *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command} {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def serve(folder: Path, database: str) -> None:
    """Start a proxy on an empty database, send it one request and one verdict, and stop it."""
    key, port = f"sk-{secrets.token_hex(16)}", free_port()
    (folder / "config.json").write_text(json.dumps(configuration(key, database)))
    log = folder / "proxy.log"
    command = [str(BESIDE / "litellm"), "--config", "config.json", "--host", "127.0.0.1"]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=output,
            stderr=output,
        ) as proxy,
    ):
        try:
            talk(f"http://127.0.0.1:{port}", key, proxy)
        except Exception as error:
            raise SystemExit(f"{error!r}\n{log.read_text(errors='replace')[-4000:]}") from error
        finally:
            proxy.terminate()


def talk(url: str, key: str, proxy: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_live(url):
        if proxy.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the proxy does not serve")
        time.sleep(0.2)
    question = [{"role": "user", "content": "hello"}]
    headers, answer = post(url, key, "/v1/chat/completions", model="zoo", messages=question)
    if "x-messplus-model" not in headers:
        raise RuntimeError("the request was not routed")
    _, verdict = post(url, key, "/messplus/feedback", id=answer["id"], satisfied=True)
    if verdict["outcome"] != "counted":
        raise RuntimeError(f"the verdict did not count: {verdict}")


def is_live(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/liveliness", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def post(url: str, key: str, path: str, **body: Any) -> tuple[dict[str, str], Any]:
    """Send JSON; the headers of the answer, in lower case, and its JSON."""
    request = urllib.request.Request(
        f"{url}{path}",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {name.lower(): value for name, value in answer.headers.items()}, json.load(
                answer
            )
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.code} {error.read()!r}") from error


def configuration(key: str, database: str) -> dict[str, Any]:
    """Two models that answer without a server, as one zoo; JSON is YAML too."""
    prices = {"small": 0.000001, "large": 0.00001}
    return {
        "model_list": [
            {
                "model_name": "zoo",
                "litellm_params": {"model": f"openai/{name}", "mock_response": f"from {name}"},
                "model_info": {"input_cost_per_token": price, "output_cost_per_token": price},
            }
            for name, price in prices.items()
        ],
        "general_settings": {"master_key": key},
        "litellm_settings": {"callbacks": ["litellm_messplus.plugin.instance"]},
        "messplus": {
            "database": database,
            "zoos": {"zoo": {"alpha": 0.75}},
        },
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    main()
