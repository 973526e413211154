"""The process that learns is killed, stopped, deposed, or cannot publish, under load. Requests are
decided from the last state meanwhile, and what was acknowledged is in the log afterwards."""

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from litellm_messplus.learning.keeper import SILENT_SECONDS
from litellm_messplus.learning.spool import LATE_SECONDS
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.store import inbox
from litellm_messplus.store.database import create_engine
from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.patience import until
from tests.support.postgres import postgres_server
from tests.support.processes import children_of
from tests.support.proxy import Config
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 20
KILLS = 5
PROCESS = "litellm_messplus.learning.process"
REFUSE_STATES = """
    CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$
    LANGUAGE plpgsql
"""
ON_STATES = """
    CREATE TRIGGER refused BEFORE UPDATE OF state ON learner FOR EACH ROW
    WHEN (NEW.state IS NOT NULL) EXECUTE FUNCTION refuse()
"""


@dataclass
class Scene:
    """A proxy under load, and the process that learns for it."""

    proxy: WarmProxy
    load: Load

    @property
    def is_sqlite(self) -> bool:
        return "sqlite" in self.url

    @property
    def url(self) -> str:
        return str(self.proxy.config["messplus"]["database"])

    @property
    def learner(self) -> int:
        """The process id of the learner; waits until there is one."""
        until(lambda: len(self._learners) == 1, self._explain)
        return self._learners[0]

    @property
    def _learners(self) -> list[int]:
        return children_of(self.proxy.process_id, PROCESS)

    def _explain(self) -> str:
        return f"{self.load.tally}\n{self.proxy.log[-4000:]}"

    def replaced(self, before: int) -> None:
        """Wait until another learner is there, and its state is not late."""
        until(lambda: self._learners not in ([], [before]), self._explain)
        self.until_fresh()

    def read(self, path: str) -> Any:
        with self.proxy.client("sk-operator") as operator:
            answer = operator.get(path).raise_for_status()
        return answer.text if path.endswith("metrics") else answer.json()

    def state_seconds(self) -> float:
        """The age of the state, from the metrics, which have it always."""
        lines = self.read("/messplus/metrics").splitlines()
        (value,) = (line.split()[1] for line in lines if line.startswith("messplus_state_seconds"))
        return float(value)

    def until_late(self) -> None:
        """Wait until all places say that the state is late; requests and verdicts go on."""
        until(lambda: self.state_seconds() >= LATE_SECONDS, self._explain)
        assert self.read("/messplus/health")["state_seconds"] >= LATE_SECONDS
        until(lambda: AlertKind.LATE_STATE in self.alerts(), self._explain)
        self.load.until_served(SOME)
        self.load.until_acknowledged(SOME)

    def until_fresh(self) -> None:
        """Wait until no place says so any more."""
        until(lambda: self.state_seconds() < SILENT_SECONDS, self._explain)
        until(lambda: AlertKind.LATE_STATE not in self.alerts(), self._explain)
        assert "state_seconds" not in self.read("/messplus/health")

    def alerts(self) -> list[str]:
        return [alert["kind"] for alert in self.read("/messplus/status")["alerts"]]

    def run(self, statement: str) -> None:
        self.proxy.rows(statement)


def killed(scene: Scene) -> None:
    """At any moment, also right after another one took its place."""
    for number in range(KILLS):
        learner = scene.learner
        time.sleep(0.1 * number)
        os.kill(learner, signal.SIGKILL)
        scene.load.until_acknowledged(SOME)
        scene.replaced(learner)
        scene.load.until_acknowledged(SOME)


def stopped(scene: Scene) -> None:
    """It keeps its lease, so that no other one takes its place, and goes on where it stood."""
    learner = scene.learner
    stop(scene, learner)
    try:
        scene.until_late()
        assert scene.learner == learner
    finally:
        os.kill(learner, signal.SIGCONT)
    scene.until_fresh()


def stop(scene: Scene, learner: int) -> None:
    """Stop it between two transactions: in one, it would keep SQLite's lock as any writer may."""
    os.kill(learner, signal.SIGSTOP)
    while scene.is_sqlite and is_locked(scene):
        os.kill(learner, signal.SIGCONT)
        time.sleep(0.01)
        os.kill(learner, signal.SIGSTOP)


def is_locked(scene: Scene) -> bool:
    path = scene.proxy.folder / "messplus.db"
    with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        other.rollback()
    return False


def deposed(scene: Scene) -> None:
    """Another process takes the office, as where the lock was lost, and ends at once."""
    for _ in range(2):
        learner = scene.learner
        asyncio.run(elect(scene.url))
        scene.replaced(learner)
        scene.load.until_acknowledged(SOME)


async def elect(url: str) -> None:
    database = create_engine(url)
    await inbox.elect(database, "another process", datetime.now(UTC))
    await database.dispose()


def unpublished(scene: Scene) -> None:
    """Killed between the commit and the publication: what is committed is in no state yet."""
    learner, part = scene.learner, scene.proxy.folder / "messplus.db-state.part"
    if scene.is_sqlite:
        until(lambda: made(part.mkdir))
    else:
        scene.run(REFUSE_STATES)
        scene.run(ON_STATES)
    scene.until_late()
    os.kill(learner, signal.SIGKILL)
    scene.load.until_acknowledged(SOME)
    if scene.is_sqlite:
        part.rmdir()
    else:
        scene.run("DROP TRIGGER refused ON learner")
    scene.replaced(learner)


def made(make: Callable[[], None]) -> bool:
    try:
        make()
    except FileExistsError:  # it is being written just now
        return False
    return True


def deleted(scene: Scene) -> None:
    """The file of the state, again and again, and its lock."""
    state = scene.proxy.folder / "messplus.db-state"
    learner = scene.learner
    for _ in range(5):
        state.unlink(missing_ok=True)
        until(state.exists)
        scene.load.until_acknowledged(SOME)
    (scene.proxy.folder / "messplus.db-learner").unlink()
    scene.load.until_acknowledged(SOME)
    assert scene.learner == learner


CASES = {
    Fault.LEARNER_KILLED: (killed, f"{KILLS} times"),
    Fault.LEARNER_STOPPED: (stopped, "the state is late, and goes on"),
    Fault.LEARNER_DEPOSED: (deposed, "twice"),
    Fault.STATE_UNPUBLISHED: (unpublished, "and then killed"),
    Fault.STATE_DELETED: (deleted, "5 times"),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, config: Config) -> Iterator[str]:
    """Where the proxy has its history."""
    if request.param == "sqlite":
        yield "SQLite"
        return
    with postgres_server() as server:
        config["messplus"]["database"] = server.database()
        yield "Postgres"


@pytest.mark.parametrize("fault", CASES)
def test_requests_and_verdicts_go_on(
    place: str, proxy: WarmProxy, rows: list[Row], fault: Fault
) -> None:
    if fault is Fault.STATE_DELETED and place != "SQLite":
        pytest.skip("on Postgres the state is a row")
    happens, note = CASES[fault]
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        scene = Scene(proxy, load)
        happens(scene)
        load.until_acknowledged(SOME)
        scene.until_fresh()
    proxy.stop()

    conclude(rows, fault, proxy, load, f"{place}: {note}")
    assert load.tally.unrouted == 0
    assert load.tally.refused == 0
    (logged,) = proxy.rows("SELECT COUNT(*) AS requests FROM requests")
    assert logged == {"requests": load.tally.served}
    assert proxy.rows("SELECT id FROM inbox") == []
