"""For every test: one thread of BLAS, as in the proxy and the replay; LiteLLM's prices as they are
installed, not fetched; tables as wide as a terminal that shows them whole; property tests that draw
the same examples each time. And what most rooms ask for: a database in a file, a zoo.

With `--postgres`, the proxies of the end-to-end tests keep their history on a real Postgres.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.database import create_engine, migrate
from tests.support import failures, packages
from tests.support.builders import POLICIES, build_zoo
from tests.support.postgres import postgres_server
from tests.support.proxy import POSTGRES

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ["COLUMNS"] = "120"
threadpool_limits(limits=1, user_api="blas")
settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is
)
settings.load_profile("same")

SERVER = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres", action="store_true", help="real proxies on a real Postgres, not on SQLite"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SERVER] = running = ExitStack()
    if not config.getoption("--postgres"):
        return
    if packages.find("postgresql") is None:
        raise pytest.UsageError(f"--postgres: {packages.INSTALL} postgresql")
    os.environ[POSTGRES] = running.enter_context(postgres_server()).url()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end how to install what tests were skipped without."""
    yield
    reasons = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    if line := packages.summary(reasons):
        terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[SERVER].close()


@pytest.fixture(autouse=True)
def no_failures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of a real proxy ends with no failure counted but those that it is marked with."""
    yield
    refuse_failures(request.node)


@pytest.fixture(scope="module", autouse=True)
def no_failures_at_the_stop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nor do the proxies of a module count others when they stop, after the last of its tests."""
    yield
    refuse_failures(*(each for each in request.session.items if each.path == request.path))


def refuse_failures(*tests: pytest.Item) -> None:
    """Fail for what was counted and none of these tests is marked with."""
    if not any(each.get_closest_marker("end_to_end") for each in tests):
        return
    wanted = {name for each in tests for mark in each.iter_markers("counts") for name in mark.args}
    found = failures.newly_counted()
    assert not {name for names in found.values() for name in names} - wanted, found


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An empty log in a file, at this code's version."""
    engine = create_engine(database_url)
    await migrate(engine)
    yield engine
    await engine.dispose()


@pytest.fixture(params=POLICIES)
def zoo(request: pytest.FixtureRequest) -> Zoo:
    """The same zoo under each policy in turn."""
    return build_zoo(policy=request.param)
