"""The brain's process is killed or stopped under load: requests are served meanwhile, by what is
known to hold, and what was acknowledged is in the log afterwards."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.patience import until
from tests.support.postgres import postgres_server
from tests.support.processes import children_of
from tests.support.proxy import Config
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 20
KILLS = 3
PROCESS = "litellm_messplus.brain.process"


@dataclass
class Scene:
    """A proxy under load, and the brain of its worker."""

    proxy: WarmProxy
    load: Load

    @property
    def brain(self) -> int:
        """The process id of the brain; waits until there is one."""
        until(lambda: len(self._brains) == 1, self._explain)
        return self._brains[0]

    @property
    def _brains(self) -> list[int]:
        return children_of(self.proxy.process_id, PROCESS)

    def _explain(self) -> str:
        return f"{self.load.tally}\n{self.proxy.log[-4000:]}"

    def replaced(self, before: int) -> None:
        """Wait until another one is there."""
        until(lambda: self._brains not in ([], [before]), self._explain)


def killed(scene: Scene) -> None:
    """At any moment, also right after another one took its place."""
    for number in range(KILLS):
        brain = scene.brain
        time.sleep(0.1 * number)
        os.kill(brain, signal.SIGKILL)
        scene.load.until_served(SOME)
        scene.replaced(brain)
        scene.load.until_acknowledged(SOME)


def stopped(scene: Scene) -> None:
    """It keeps its lease, so that no other one takes its place, and goes on where it stood."""
    brain = scene.brain
    os.kill(brain, signal.SIGSTOP)
    try:
        scene.load.until_served(SOME)
        assert scene.brain == brain
    finally:
        os.kill(brain, signal.SIGCONT)
    scene.load.until_acknowledged(SOME)


CASES: dict[Fault, tuple[Callable[[Scene], None], str]] = {
    Fault.BRAIN_KILLED: (killed, f"{KILLS} times"),
    Fault.BRAIN_STOPPED: (stopped, "and goes on"),
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
def test_requests_go_on(place: str, proxy: WarmProxy, rows: list[Row], fault: Fault) -> None:
    happens, note = CASES[fault]
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        happens(Scene(proxy, load))
        load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, fault, proxy, load, f"{place}: {note}")
    (logged,) = proxy.rows("SELECT COUNT(*) AS requests FROM requests")
    assert logged["requests"] >= load.tally.served - load.tally.unrouted
    assert proxy.rows("SELECT request_id FROM outcomes WHERE status IS NULL") == []
