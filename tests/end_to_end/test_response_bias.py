"""What a user's word weighs where unsatisfied users answer more often: stated, or by an audit."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import until
from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

BAD = "ruined"
JUDGE = {"how": "grade", "judge": "strict"}
ANSWER = re.compile(r"answer_\d+")


def answer(model: str, body: dict[str, Any]) -> Reply:
    """A judge that is always right: an answer is bad where its question says so."""
    if model != "strict":
        return Reply("fine")
    shown = json.dumps(body)
    verdict = {"reason": "seen", "satisfied": BAD not in shown}
    return Reply(json.dumps(dict.fromkeys(sorted(set(ANSWER.findall(shown))), verdict)))


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    upstream.script = answer
    zoo = {"alpha": 0.7, "response_bias": "audit", "buy_labels": JUDGE, "label_rate": 1.0}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    config["model_list"].append(deployment("strict", "strict", upstream.url, 1e-6))
    stated = {"alpha": 0.7, "response_bias": 3.0}
    config["messplus"]["zoos"]["stated"] = stated
    config["model_list"] += [{**each, "model_name": "stated"} for each in config["model_list"][:3]]
    running = Proxy(config, folder).start()
    yield running
    running.stop()


def test_a_stated_bias_is_part_of_each_labels_weight(proxy: Proxy) -> None:
    with proxy.client() as client:
        for satisfied in (True, False):
            request_id = ask(client, model="stated").headers["x-messplus-request-id"]
            verdict = {"id": request_id, "satisfied": satisfied}
            client.post("/messplus/feedback", json=verdict).raise_for_status()

    query = "SELECT value, weight FROM labels JOIN requests USING (request_id) WHERE zoo = 'stated'"
    assert {row["value"]: row["weight"] for row in proxy.rows(query)} == {1.0: 1.5, 0.0: 0.5}


def test_an_audit_finds_out_who_stays_silent(proxy: Proxy) -> None:
    """Of ten requests five are bad; of those four are answered, of the good ones one."""
    with proxy.client() as client:
        for number in range(60):
            is_bad = number % 2 == 0
            prompt = f"{BAD if is_bad else 'good'} {number}"
            request_id = ask(client, prompt).headers["x-messplus-request-id"]
            if number % 10 in (0, 2, 4, 6, 1):
                verdict = {"id": request_id, "satisfied": not is_bad}
                client.post("/messplus/feedback", json=verdict).raise_for_status()
        graded = "SELECT * FROM gradings WHERE status = 'graded'"
        until(lambda: len(proxy.rows(graded)) >= 59, lambda: proxy.log[-4000:])

        (level,) = [
            each for each in client.get("/messplus/status").json()["levels"] if each["zoo"] == "zoo"
        ]

    found = level["response_bias"]
    assert found["graded"] >= 59
    assert found["ratio"] > 1.5
