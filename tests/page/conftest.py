"""A seeded database, the page that serves it, and a real browser; each made once."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.page import data
from litellm_messplus.store.database import create_engine
from tests.page.scenes import make_scene, outage, watched
from tests.page.serving import ServedPage, make_database
from tests.support.browser import chromium
from tests.support.packages import program
from tests.support.patience import PATIENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REQUESTS = 3000


@pytest.fixture(scope="package", autouse=True)
def unhurried() -> Iterator[None]:
    """A busy machine reads late, too, what the page shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "LONGEST_SECONDS", PATIENT)
        yield


@pytest.fixture(scope="package")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_database(tmp_path_factory.mktemp("page") / "messplus.db", REQUESTS)


@pytest.fixture(scope="package")
def watched_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_scene(tmp_path_factory.mktemp("watched") / "messplus.db", watched())


@pytest.fixture(scope="package")
def outage_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_scene(tmp_path_factory.mktemp("outage") / "messplus.db", outage())


@pytest.fixture(scope="package")
def empty_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_scene(tmp_path_factory.mktemp("empty") / "messplus.db", [])


@pytest.fixture(scope="package")
def scenes(watched_url: str, outage_url: str, empty_url: str) -> None:
    """All of them are made before a browser, whose event loop leaves no room for another."""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url)
    yield engine
    await engine.dispose()


@pytest.fixture(scope="package")
def page(database_url: str) -> Iterator[ServedPage]:
    served = ServedPage(database_url).start()
    yield served
    served.stop()


@pytest.fixture(scope="module")
def browser(page: ServedPage, scenes: None) -> Iterator["Browser"]:
    """A browser, after the page; skipped where it is not installed."""
    with chromium(program("chromium")) as started:
        yield started
