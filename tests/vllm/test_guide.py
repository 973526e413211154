"""What `docs/vllm.md` shows can be done as it stands, on real servers and a real proxy."""

import json
import os
import subprocess
from collections.abc import Mapping

import httpx
import pytest

from tests.support.markdown import Document
from tests.support.proxy import Proxy
from tests.support.shell import commands
from tests.support.vllm_server import ENVIRONMENT, PYTHON
from tests.vllm.client import question
from tests.vllm.conftest import KEY, Servers
from tests.vllm.operator_config import ROOT

pytestmark = pytest.mark.vllm

PAGE = Document(ROOT / "docs" / "vllm.md")
PROXY_IN_PAGE = "http://localhost:4000"


def checked(*given: list[str]) -> subprocess.CompletedProcess[str]:
    """vLLM's own verdict on arguments of `vllm serve`."""
    return subprocess.run(
        [str(PYTHON), "-m", "tests.vllm.serve_arguments"],
        input="\n".join(map(json.dumps, given)),
        env={**os.environ, **ENVIRONMENT},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_vllm_takes_every_flag_that_the_page_gives_it() -> None:
    shown = commands(PAGE, "vllm", "serve")

    assert shown
    ended = checked(*shown)
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_vllm_refuses_a_flag_that_it_does_not_have() -> None:
    (first, *_) = commands(PAGE, "vllm", "serve")

    ended = checked([*first, "--no-such-flag"])

    assert ended.returncode != 0
    assert "--no-such-flag" in ended.stderr


def test_the_answers_of_vllm_say_how_long_they_waited(servers: Servers) -> None:
    for name, server in servers.items():
        body = {**question("sort: 52 97 11"), "model": name}
        answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
        assert answer.json()["metrics"]["queue_time_ms"] >= 0


def run_as_shown(proxy: Proxy, beginning: str, variables: Mapping[str, str]) -> str:
    """What the page's shell code with that line prints; the proxy's port is the only change."""
    (code,) = (block.code for block in PAGE.blocks if f"\n{beginning}" in f"\n{block.code}")
    lines = [line for line in code.splitlines() if not line.startswith("export")]
    ended = subprocess.run(
        ["bash", "-euc", "\n".join(lines).replace(PROXY_IN_PAGE, proxy.url)],
        env={**os.environ, "LITELLM_MASTER_KEY": KEY, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def test_the_first_request_its_feedback_and_its_explanation_are_as_shown(proxy: Proxy) -> None:
    answer = run_as_shown(proxy, f"curl --include {PROXY_IN_PAGE}/v1/chat/completions", {})
    headers = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
    variables = {"REQUEST_ID": headers["x-messplus-request-id"]}
    accepted = run_as_shown(proxy, f"curl {PROXY_IN_PAGE}/messplus/feedback", variables)
    shown = json.loads(run_as_shown(proxy, f"curl {PROXY_IN_PAGE}/messplus/requests", variables))

    assert headers["x-messplus-model"] == shown["chosen"]
    assert json.loads(accepted)["request_id"] == variables["REQUEST_ID"]
    assert [label["value"] for label in shown["labels"]] == [1.0]
