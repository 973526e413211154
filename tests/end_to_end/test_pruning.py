"""Pruning beside a proxy that serves and takes feedback: nobody notices, and nothing is lost."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.patience import PATIENT, until
from tests.support.proxy import Proxy, ask, quick, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

OLD = 150
"""Requests that are made older than they are."""


class Clients:
    """Ask, and judge what they were answered, until they are told to stop."""

    def __init__(self, proxy: Proxy) -> None:
        self.answers: list[int] = []
        self.judged: dict[str, float] = {}
        self._proxy = proxy
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=3)
        self._running = [self._pool.submit(self._run, number) for number in range(3)]

    def end(self) -> None:
        self._stop.set()
        for each in self._running:
            each.result(timeout=PATIENT)
        self._pool.shutdown()

    def _run(self, number: int) -> None:
        with self._proxy.client() as client:
            turn = 0
            while not self._stop.is_set():
                turn += 1
                answer = ask(client, f"client {number} asks {turn}")
                self.answers.append(answer.status_code)
                given = answer.headers["x-messplus-request-id"]
                verdict = {"id": given, "satisfied": turn % 3 > 0}
                said = client.post("/messplus/feedback", json=verdict)
                self.answers.append(said.status_code)
                self.judged[given] = float(turn % 3 > 0)


def make_old(proxy: Proxy) -> list[str]:
    """As if the first requests had been made ten days ago."""
    connection = proxy.database()
    query = "SELECT request_id FROM requests ORDER BY position LIMIT ?"
    ids = [row[0] for row in connection.execute(query, (OLD,))]
    long_ago = f"{datetime.now(UTC) - timedelta(days=10):%Y-%m-%d %H:%M:%S.%f}"
    connection.execute(
        "UPDATE requests SET created_at = ? WHERE position <= "
        "(SELECT MAX(position) FROM requests WHERE request_id = ?)",
        (long_ago, ids[-1]),
    )
    connection.commit()
    connection.close()
    return ids


def faults(proxy: Proxy) -> list[str]:
    """What `messplus verify` finds."""
    arguments = ["verify", "--database", str(proxy.config["messplus"]["database"]), "--json"]
    found: list[str] = json.loads(CliRunner().invoke(app, arguments).stdout)["faults"]
    return found


def test_a_prune_under_load_loses_nothing(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    retention = {"keep_days": 5}
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.7}, retention=retention)
    proxy = Proxy(quick(config, tmp_path, learner={"snapshot_every": 60}), tmp_path).start()
    first = Clients(proxy)
    until(lambda: len(first.judged) > OLD, lambda: proxy.log[-3000:])
    first.end()
    proxy.stop()
    old = make_old(proxy)

    proxy.start()
    clients = Clients(proxy)
    try:
        until(lambda: count(proxy, "requests", old) == 0, lambda: proxy.log[-3000:])
        until(lambda: "retention_runs" in health(proxy), lambda: proxy.log[-3000:])
        clients.end()
        with proxy.client() as client:
            late = client.post("/messplus/feedback", json={"id": old[0], "satisfied": True})
            never = client.post("/messplus/feedback", json={"id": "never", "satisfied": True})
        live = faults(proxy)
        failures = {name: n for name, n in health(proxy).items() if "fail" in name}
    finally:
        clients.end()
        proxy.kill()

    assert set(clients.answers) == {200}
    assert late.status_code == never.status_code == 404
    assert late.text == never.text.replace("never", old[0])
    assert failures == {}
    assert live == []
    assert len(clients.judged) > 50, "hardly any load"
    kept = {name: value for name, value in first.judged.items() if name not in old}
    found = proxy.rows("SELECT request_id, value FROM labels")
    assert {row["request_id"]: row["value"] for row in found} == kept | clients.judged
    proxy.start().stop()
    assert faults(proxy) == []
    assert not any(count(proxy, table, old) for table in ("calls", "labels"))


def count(proxy: Proxy, table: str, ids: list[str]) -> int:
    marks = ", ".join("?" for _ in ids)
    query = f"SELECT COUNT(*) AS n FROM {table} WHERE request_id IN ({marks})"
    return int(proxy.rows(query, *ids)[0]["n"])


def health(proxy: Proxy) -> dict[str, int]:
    with proxy.client() as client:
        found: dict[str, int] = client.get("/messplus/health").json()
        return found
