"""Two proxies of two workers each on one Postgres share a brain: whichever answers, and whatever is
killed."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.support.patience import PATIENT, until
from tests.support.postgres import Postgres
from tests.support.processes import children_of, is_running
from tests.support.proxy import PAPER, Proxy, ask, patient, quick, zoo_config
from tests.support.traffic import Traffic, assert_every_acknowledged_label_is_there
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

WORKERS = ("--num_workers", "2", "--timeout_worker_healthcheck", "60")
COUNTED = "explorations_left_out"
"""Counts every request: it explores two models, and one call at a time is allowed."""


@dataclass
class Cluster:
    server: Postgres
    proxies: list[Proxy]

    @property
    def log(self) -> str:
        return "\n".join(proxy.log[-3000:] for proxy in self.proxies)

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.proxies[0].rows(query)

    def answers(self, path: str, times: int) -> Iterator[Any]:
        """The answers over connections that are made anew, so that any worker may answer."""
        for turn in range(times):
            with self.proxies[turn % 2].client() as client:
                yield client.get(path).raise_for_status().json()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    serving = Upstream()
    serving.script = lambda model, body: Reply(text=f"from {model}")
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def cluster(
    server: Postgres, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Started at once, on a database without a table."""
    database = server.database()
    proxies = []
    for number in range(2):
        folder = tmp_path_factory.mktemp(f"proxy-{number}")
        config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 10.0})
        config["messplus"]["database"] = database
        config["general_settings"]["master_key"] = "sk-of-both-proxies"
        config = quick(patient(config, folder), folder, explorer={"concurrent": 1})
        proxies.append(Proxy(config, folder, arguments=WORKERS))
    for proxy in proxies:
        proxy.launch()
    found = Cluster(server, proxies)
    try:
        until(lambda: all(proxy.is_ready() for proxy in proxies), lambda: found.log)
        yield found
    finally:
        for proxy in proxies:
            proxy.stop()


@dataclass
class Watch:
    """Scrapes both proxies in turn, and remembers every counter that fell."""

    cluster: Cluster
    fallen: list[tuple[str, int, int]] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join(PATIENT)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                for now in self.cluster.answers("/messplus/health", 2):
                    self._see(now)
            except httpx.HTTPError:  # of a worker that was killed
                continue

    def _see(self, now: dict[str, int]) -> None:
        self.fallen += [
            (name, before, now.get(name, 0))
            for name, before in self.last.items()
            if now.get(name, 0) < before
        ]
        self.last = now


def test_starts_that_race_on_an_empty_database_make_it_once(cluster: Cluster) -> None:
    assert cluster.rows("SELECT id FROM log_head") == [{"id": 1}]
    assert len(cluster.rows("SELECT version_num FROM alembic_version")) == 1


def test_what_one_proxy_answered_can_be_judged_at_the_other_at_once(cluster: Cluster) -> None:
    here, there = cluster.proxies
    for _ in range(5):
        with here.client() as asking, there.client() as judging:
            request_id = ask(asking).headers["x-messplus-request-id"]
            verdict = {"id": request_id, "satisfied": True}
            judging.post("/messplus/feedback", json=verdict).raise_for_status()


def test_a_worker_that_is_killed_loses_no_label_and_no_count(cluster: Cluster) -> None:
    traffic, watch = Traffic(cluster.proxies, goes_on=True), Watch(cluster)
    until(lambda: len(traffic.acknowledged) > 20, lambda: cluster.log)
    until(lambda: watch.last.get(COUNTED, 0) > 10, lambda: cluster.log)
    (victim, *_) = children_of(cluster.proxies[0].process_id, "spawn_main")
    before, count = len(traffic.acknowledged), watch.last[COUNTED]
    os.kill(victim, signal.SIGKILL)
    until(lambda: not is_running(victim))
    until(lambda: len(traffic.acknowledged) > before + 40, lambda: cluster.log)
    until(lambda: watch.last[COUNTED] > count + 20, lambda: cluster.log)
    traffic.end()
    watch.end()

    assert watch.fallen == []
    assert traffic.broken <= 8, "beyond the requests that the killed worker had"
    assert_every_acknowledged_label_is_there(cluster.proxies[0], traffic)


@pytest.mark.counts(
    *("database_failures", "journal_failures", "label_failures"),
    *("lines_unread", "live_zoo_failures", "modes_unread"),
    *("readings_given_up", "snapshot_failures", "watch_failures", "way_back_failures"),
)
def test_a_killed_database_under_load_fails_none_loses_no_label(cluster: Cluster) -> None:
    traffic = Traffic(cluster.proxies)
    until(lambda: len(traffic.acknowledged) > 20, lambda: cluster.log)
    cluster.server.kill()
    answered = traffic.answered
    until(lambda: traffic.answered > answered + 10, lambda: cluster.log)
    cluster.server.start()
    before = len(traffic.acknowledged)
    until(lambda: len(traffic.acknowledged) > before + 40, lambda: cluster.log)
    traffic.end()

    assert (dict(traffic.refused), traffic.broken, traffic.unrouted) == ({}, 0, 0)
    assert_every_acknowledged_label_is_there(cluster.proxies[0], traffic)


def test_every_request_has_a_number_of_its_own(cluster: Cluster) -> None:
    numbers = [row["t"] for row in cluster.rows("SELECT t FROM requests ORDER BY position")]

    assert len(numbers) > 100
    assert numbers == list(range(1, len(numbers) + 1))
