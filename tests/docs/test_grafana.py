"""`docs/grafana.json`: Grafana's own model takes all of it, and a real Prometheus answers each of
its expressions from what the plugin says at a scrape."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from litellm_messplus.brain.metrics import DISTRIBUTIONS, MEANINGS, Distributions, exposition
from litellm_messplus.brain.workers import DISTRIBUTED
from litellm_messplus.status.figures import gauges
from tests.support.builders import exploration_call, request, served_call
from tests.support.markdown import ROOT
from tests.support.packages import program
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port
from tests.support.statuses import KEY, status

DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs" / "grafana.json").read_text("utf-8"))
ZOO = KEY[0]
EXPRESSIONS = [
    pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
]


def test_grafanas_own_model_takes_all_of_it() -> None:
    """A key that Grafana does not know would be lost on the way."""
    read = json.loads(json.dumps(Dashboard.from_json(DASHBOARD), cls=JSONEncoder))

    assert missing(DASHBOARD, read, "") == []


def missing(given: Any, read: Any, place: str) -> list[str]:
    """The places whose value Grafana's model has not kept; null is its own default."""
    if isinstance(given, dict) and isinstance(read, dict):
        return [
            lost
            for name, value in given.items()
            for lost in missing(value, read.get(name), f"{place}/{name}")
        ]
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        pairs = enumerate(zip(given, read, strict=True))
        return [lost for at, (a, b) in pairs for lost in missing(a, b, f"{place}/{at}")]
    return [] if given == read else [place]


def test_no_two_panels_overlap_and_each_says_what_it_shows() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (at["x"] + column, at["y"] + row) for column in range(at["w"]) for row in range(at["h"])
        }
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_each_metric_is_exported() -> None:
    exported = {*MEANINGS, *(each.metric for each in DISTRIBUTIONS)}
    named = re.findall(r"\b(messplus_\w+?)(?:_bucket|_count|_sum)?\b", json.dumps(DASHBOARD))

    assert exported >= set(named) != set()


class Scrapes:
    """What the plugin says at one scrape after the other: each has seen one more request."""

    def __init__(self) -> None:
        self._seen = Distributions()
        self.number = 0

    def __call__(self) -> str:
        self.number += 1
        name = f"r{self.number}"
        self._seen.saw(request(name, zoo=ZOO, decision_seconds=0.002))
        self._seen.saw(served_call(name, cost=0.002))
        self._seen.saw(exploration_call(name, cost=0.2))
        counts = {f"{DISTRIBUTED}{name}": count for name, count in self._seen.counts().items()}
        found = status(counters={"routing_failures": self.number}, rate=0.6)
        counted = {**counts, "routing_failures": float(self.number)}
        return exposition(gauges(found), counted)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Debian's Prometheus, which has scraped the plugin's metrics a few times."""
    prometheus = program("prometheus")
    folder, scrapes, port = tmp_path_factory.mktemp("prometheus"), Scrapes(), free_port()
    with metrics_served(scrapes) as target:
        (folder / "prometheus.yml").write_text(configuration(target))
        process = subprocess.Popen(
            [prometheus, *arguments(folder, port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}/api/v1", timeout=PATIENT
            ) as client:
                until(lambda: has_scraped(client))
                yield client
        finally:
            process.terminate()
            process.wait(PATIENT)


def has_scraped(prometheus: httpx.Client) -> bool:
    """Whether a few scrapes have come through: those that a busy machine makes late do not."""
    try:
        answer = prometheus.get("/query", params={"query": "sum_over_time(up[5m])"})
    except httpx.TransportError:
        return False
    if not answer.is_success:  # it listens, and is not ready
        return False
    return any(float(series["value"][1]) >= 4 for series in answer.json()["data"]["result"])


def arguments(folder: Path, port: int) -> list[str]:
    return [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]


def configuration(target: int) -> str:
    return f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: messplus
    metrics_path: /messplus/metrics
    static_configs: [{{targets: ["127.0.0.1:{target}"]}}]
"""


@contextmanager
def metrics_served(scrapes: Scrapes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = scrapes().encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def as_asked(expression: str) -> str:
    """The expression as Grafana sends it: for all zoos and levels, over a short range."""
    for variable, value in (("zoo", ".*"), ("level", ".*"), ("__rate_interval", "5m")):
        expression = re.sub(rf"\${variable}\b", value, expression)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prometheus_answers_each_expression(prometheus: httpx.Client, expression: str) -> None:
    answer = prometheus.get("/query", params={"query": as_asked(expression)}).json()

    assert answer["status"] == "success", answer
    values = [float(series["value"][1]) for series in answer["data"]["result"]]
    assert values
    assert all(value == value for value in values), "not a number"


def test_each_variable_has_values(prometheus: httpx.Client) -> None:
    variables = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert [each["name"] for each in variables] == ["zoo", "level"]
    for each in variables:
        metric, name = re.findall(r"label_values\((\w+), (\w+)\)", each["query"]["query"])[0]
        found = prometheus.get(f"/label/{name}/values", params={"match[]": metric}).json()
        assert found["data"], each["name"]
