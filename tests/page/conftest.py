"""A seeded database, the page that serves it, and a real browser; each made once."""

import shutil
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine
from tests.page.serving import ServedPage, make_database

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REQUESTS = 3000


@pytest.fixture(scope="package")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_database(tmp_path_factory.mktemp("page") / "messplus.db", REQUESTS)


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
def browser(page: ServedPage) -> Iterator["Browser"]:
    """Debian's Chromium, after the page; skipped where it, or Playwright, is missing.

    Playwright runs an event loop in this thread until it ends, so nothing else may meanwhile.
    """
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed (pip install 'litellm-messplus[dev]')")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium is installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(Path(found)), args=["--no-sandbox"]
        )
        yield started
        started.close()
