"""`messplus verify` beside a real proxy: in service, after it was killed, and after it stopped."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


def verify(proxy: Proxy, *given: str) -> dict[str, Any]:
    arguments = ["verify", "--config", str(proxy.folder / "config.yaml"), "--json", *given]
    report: dict[str, Any] = json.loads(CliRunner().invoke(app, arguments).stdout)
    return report


def serve(proxy: Proxy, count: int) -> None:
    with proxy.client() as client:
        for number in range(count):
            answer = ask(client, f"question {number}")
            body = {"id": answer.json()["id"], "satisfied": number % 3 > 0}
            assert client.post("/messplus/feedback", json=body).status_code == 200


def test_a_proxy_in_service_and_its_log_agree(upstream: Upstream, tmp_path: Path) -> None:
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.7})
    proxy = Proxy(config, tmp_path).start()
    try:
        serve(proxy, 12)
        in_service = verify(proxy, "--url", proxy.url, "--key", proxy.master_key)
        serve(proxy, 3)
    finally:
        proxy.kill()
    killed = verify(proxy)
    proxy.start().stop()
    stopped = verify(proxy)

    for report in (in_service, killed, stopped):
        assert report["is_sound"], report["findings"]
    told = [finding["told"] for finding in in_service["findings"]]
    assert "zoo, default: the proxy's queue is the fold's" in told
    assert any("to the bit" in finding["told"] for finding in stopped["findings"])
