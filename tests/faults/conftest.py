"""One warm start and one upstream for all faults, and the table that is printed at the end."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.faults import Attacks, Row, render, total
from tests.support.keys import CUSTOM_AUTH
from tests.support.proxy import Config, quick, zoo_config
from tests.support.upstream import Reply, Upstream
from tests.support.warm_start import WarmProxy, WarmStart

ROWS = pytest.StashKey[list[Row]]()
ATTACKS = pytest.StashKey[list[Attacks]]()
MakeProxy = Callable[..., WarmProxy]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []
    config.stash[ATTACKS] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows, attacks = config.stash[ROWS], config.stash[ATTACKS]
    if rows or attacks:
        terminalreporter.section("faults")
    for line in (*render(rows), total(rows)) if rows else ():
        terminalreporter.write_line(line)
    for attack in attacks:
        terminalreporter.write_line(attack.line)


@pytest.fixture
def rows(pytestconfig: pytest.Config) -> list[Row]:
    """The table's, of all faults so far."""
    return pytestconfig.stash[ROWS]


@pytest.fixture
def attacks(pytestconfig: pytest.Config) -> list[Attacks]:
    """What hostile keys came to, for the end."""
    return pytestconfig.stash[ATTACKS]


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmStart]:
    started = WarmStart()
    yield started
    started.close()


@pytest.fixture(scope="session")
def serving() -> Iterator[Upstream]:
    upstream = Upstream()
    upstream.start()
    yield upstream
    upstream.stop()


@pytest.fixture
def upstream(serving: Upstream) -> Upstream:
    serving.script = lambda model, body: Reply(text=f"from {model}")
    serving.requests.clear()
    return serving


@pytest.fixture
def config(upstream: Upstream, tmp_path: Path) -> Config:
    """Keys of users and of an operator, no limits that the load would meet, many snapshots."""
    (tmp_path / "keys.py").write_text(CUSTOM_AUTH)
    zoo: dict[str, Any] = {"alpha": 0.7}
    made = zoo_config(upstream.url, tmp_path, zoo=zoo, deadline_seconds=5.0)
    made["general_settings"]["custom_auth"] = "keys.authenticate"
    return quick(made, tmp_path, verdicts={"per_minute": 100_000}, learner={"snapshot_every": 100})


@pytest.fixture
def proxy(config: Config, tmp_path: Path, warm: WarmStart) -> Iterator[WarmProxy]:
    """Not started; ended afterwards if the test has not done so."""
    made = WarmProxy(config, tmp_path, warm=warm)
    yield made
    made.kill()


@pytest.fixture(scope="session")
def rounds() -> int:
    """How often the proxy is killed."""
    return int(os.environ.get("MESSPLUS_KILL_ROUNDS", "50"))
