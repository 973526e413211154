"""`messplus explain` and `requests` on a real proxy and its database."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.markdown import ROOT
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    running = Proxy(zoo_config(upstream.url, folder, zoo={"alpha": 0.6}), folder).start()
    yield running
    running.stop()


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_a_request_is_judged_explained_and_listed(proxy: Proxy) -> None:
    with proxy.client() as client:
        given = ask(client).json()["id"]
        sent = client.post("/messplus/feedback", json={"id": given, "satisfied": False})
    there = ("--url", proxy.url, "--key", proxy.master_key)
    database = str(proxy.folder / "messplus.db")

    assert sent.json()["outcome"] == "counted"
    of_proxy = json.loads(shown("explain", given, "--json", *there))
    request_id = of_proxy["request"]["request_id"]
    of_database = json.loads(shown("explain", request_id, "--json", "--database", database))
    listed: list[dict[str, Any]] = json.loads(
        shown("requests", "--unsatisfied", "--json", "--database", database)
    )

    for name in ("candidates", "prices", "now", "outcome"):
        assert of_proxy[name] == of_database[name]
    assert of_proxy["request"].keys() == of_database["request"].keys()
    assert [label["counts"] for label in of_proxy["labels"]] == [True]
    assert of_database["prompt"]["stands_out"]
    assert [each["request_id"] for each in listed] == [request_id]
    assert request_id in shown("explain", given, *there)


def test_what_was_learned_is_shown_by_the_command_of_the_readme(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Soon after the first request, since the learner's first snapshot comes with it."""
    with proxy.client() as client:
        given = ask(client).json()["id"]
        sent = client.post("/messplus/feedback", json={"id": given, "satisfied": True})
    assert sent.status_code == 200
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"venv/bin/messplus (status --learned[^`]*)`", readme)
    assert command is not None
    monkeypatch.chdir(proxy.folder)
    monkeypatch.setenv("LITELLM_MASTER_KEY", proxy.master_key)

    arguments = command[1].replace("http://127.0.0.1:4000", proxy.url).split()
    title = "zoo: what moves the chance of a satisfactory answer"

    until(lambda: title in shown(*arguments))

    assert "no snapshot" not in shown(*arguments)
