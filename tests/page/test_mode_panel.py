"""The mode of a zoo on the page: who may change it, and what he then sees."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import make_url

from litellm_messplus.page.routes import COOKIE
from tests.page.seeded import HOSTILE, LARGE, ZOO
from tests.page.serving import KEY, ServedPage
from tests.page.test_browser import SIZES, Opened, violations
from tests.support.patience import PATIENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUTE = f"data/zoos/{ZOO}"
FROM_THE_PAGE = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def own(tmp_path: Path, database_url: str) -> Iterator[ServedPage]:
    """A page on a copy of the database: its modes are changed by one test alone."""
    copy = tmp_path / "messplus.db"
    original = make_url(database_url).database
    assert original is not None
    with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    served = ServedPage(f"sqlite+aiosqlite:///{copy}").start()
    yield served
    served.stop()


@pytest.fixture
def signed_in(own: ServedPage) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=own.url, timeout=PATIENT) as client:
        client.post("session/key", headers={"authorization": f"Bearer {KEY}"}).raise_for_status()
        yield client


@pytest.fixture(params=SIZES)
def opened(request: pytest.FixtureRequest, browser: "Browser", own: ServedPage) -> Iterator[Opened]:
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    yield Opened(context, own.url)
    context.close()


def change(client: httpx.Client, headers: dict[str, str], **wanted: Any) -> httpx.Response:
    return client.patch(ROUTE, json={"revision": 0, "mode": "on", **wanted}, headers=headers)


def test_a_session_of_the_page_changes_a_mode(signed_in: httpx.Client) -> None:
    answer = change(signed_in, FROM_THE_PAGE, reason="it looks well")

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    found = signed_in.get(ROUTE).json()
    assert (found["mode"], found["revision"], found["by"]) == ("on", 1, "administrator")
    assert found["reason"] == "it looks well"


def test_nothing_is_changed_without_the_word_of_the_browser(signed_in: httpx.Client) -> None:
    assert change(signed_in, {}).status_code == 401
    assert signed_in.get(ROUTE).json()["revision"] == 0


def test_an_origin_alone_is_that_of_the_page(own: ServedPage, signed_in: httpx.Client) -> None:
    origin = own.url.removesuffix("/messplus/ui/")

    assert change(signed_in, {"origin": origin}).status_code == 200


def test_nobody_else_sees_or_changes_it(own: ServedPage) -> None:
    guess = {"cookie": f"{COOKIE}=guess"}
    with httpx.Client(base_url=own.url, headers=guess, timeout=PATIENT) as client:
        assert client.get(ROUTE).status_code == 401
        assert change(client, FROM_THE_PAGE).status_code == 401


def test_after_signing_out_nothing_is_changed(signed_in: httpx.Client) -> None:
    session = {"cookie": f"{COOKIE}={signed_in.cookies[COOKIE]}"}
    signed_in.delete("session", headers=FROM_THE_PAGE)

    assert change(signed_in, {**FROM_THE_PAGE, **session}).status_code == 401


@pytest.mark.end_to_end
def test_an_administrator_changes_the_mode_and_sees_it(opened: Opened) -> None:
    opened.sign_in()
    page = opened.go("details")
    panel = page.locator("#mode")
    panel.get_by_text(f"Requests of {ZOO} are served by {LARGE}.").wait_for()

    panel.get_by_text("Change the mode").click()
    panel.get_by_label("Mode", exact=True).select_option("canary")
    panel.get_by_label("Share under canary").fill("0.25")
    panel.get_by_label("Reason").fill(HOSTILE[0])
    assert violations(page) == []
    page.keyboard.press("Enter")

    panel.get_by_text(f"25.0 % of the conversations of {ZOO} are routed").wait_for()
    shown = panel.inner_text()
    assert "Changed to canary." in shown
    assert "administrator, " in shown
    assert HOSTILE[0] in shown
    assert page.evaluate("document.activeElement.id") == "mode-title"
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert violations(page) == []
    assert opened.complaints == []


@pytest.mark.end_to_end
def test_a_refusal_is_shown_in_words(opened: Opened, signed_in: httpx.Client) -> None:
    opened.sign_in()
    page = opened.go("details")
    panel = page.locator("#mode")
    panel.get_by_text("Change the mode").click()
    panel.get_by_label("Share under canary").fill("2")
    panel.get_by_role("button", name="Change", exact=True).click()
    panel.get_by_text("Not changed: share: Input should be less than or equal to 1").wait_for()

    assert change(signed_in, FROM_THE_PAGE, reason="I was first").status_code == 200
    panel.get_by_label("Share under canary").fill("0.2")
    panel.get_by_role("button", name="Change", exact=True).click()
    panel.get_by_text(f"Not changed: revision 0 of zoo {ZOO} is not its newest").wait_for()
    assert violations(page) == []

    panel.get_by_role("button", name="Read it again").click()
    panel.get_by_text("I was first").wait_for()
    panel.get_by_text("Change the mode").click()
    panel.get_by_label("Mode", exact=True).select_option("watch")
    panel.get_by_role("button", name="Change", exact=True).click()
    panel.get_by_text("Changed to watch.").wait_for()
