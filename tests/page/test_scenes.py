"""The page of a zoo without requests, of one that is watched, and of an outage, in a browser."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.page.scenes import FAILED, SERVED
from tests.page.seeded import ZOO
from tests.page.serving import ServedPage
from tests.page.test_browser import SIZES, Opened, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.end_to_end
SCREENS = [("light", "desktop"), ("dark", "phone")]


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[ServedPage]:
    """A page on the database of that fixture."""
    served = ServedPage(request.getfixturevalue(request.param)).start()
    yield served
    served.stop()


@pytest.fixture(params=SCREENS, ids=str)
def opened(
    request: pytest.FixtureRequest, browser: "Browser", scene: ServedPage
) -> Iterator[Opened]:
    theme, size = request.param
    width, height = SIZES[size]
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": height})
    yield Opened(context, scene.url)
    context.close()


def assert_usable(opened: Opened, page: "Page") -> None:
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert violations(page) == []
    assert opened.complaints == []


@pytest.mark.parametrize("scene", ["outage_url"], indirect=True)
def test_an_outage_is_the_first_that_is_seen(scene: ServedPage, opened: Opened) -> None:
    scene.unrouted = [{"zoo": ZOO, "call_type": "image_generation", "answers": 1_200}]
    page = opened.sign_in()
    share = f"{100 * SERVED / (SERVED + FAILED):.1f} %"

    first = page.locator("#content .alarm, #content .card").first
    assert "failed (100.0 %): upstream" in first.inner_text()
    assert first.locator("code").inner_text() == f"messplus requests --zoo {ZOO} --failed"
    assert first.evaluate("node => node.getBoundingClientRect().bottom < innerHeight / 2")
    red = page.locator(".fact").first.locator(".failed")
    assert red.inner_text() == share
    colour = red.evaluate("node => getComputedStyle(node).color")
    assert colour in ("rgb(180, 35, 24)", "rgb(255, 143, 133)")
    assert f"failed {FAILED} (upstream {FAILED})" in page.locator(".fact").first.inner_text()
    assert page.locator(".chip.bad").first.inner_text() == "failing"
    assert page.locator(".chip.good").count() == 0
    assert f"{FAILED} of " in page.locator(".marks .alarmed").inner_text()
    page.locator(".alarms summary").click()
    notice = page.locator(".alarm.notice").last.inner_text()
    assert "1,200 requests by image_generation were not routed" in notice
    assert_usable(opened, page)


@pytest.mark.parametrize("scene", ["watched_url"], indirect=True)
def test_a_watched_zoo_shows_what_is_now_next_to_the_forecast(opened: Opened) -> None:
    page = opened.sign_in()
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.locator("#beside tbody tr").all()
    }

    assert page.locator(".fact .chip").first.inner_text() == "watched"
    now, forecast = rows["satisfied"]
    assert now.endswith("judged")
    assert "%" in forecast
    assert all(cell.startswith("$") for cell in rows["cost a request"])
    assert rows["answered"] == ["95.0 %", "as now"]
    assert page.get_by_role("heading", name="Cost as before").is_visible()
    if opened.page.viewport_size == {"width": 1440, "height": 900}:
        assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
    assert_usable(opened, page)
    opened.go("requests")
    assert page.locator("#requests tbody tr").count() == 25
    assert page.locator("#requests .chip", has_text="as before").count() == 25


@pytest.mark.parametrize("scene", ["empty_url"], indirect=True)
def test_without_requests_there_is_the_line_that_makes_the_first(
    scene: ServedPage, opened: Opened
) -> None:
    page = opened.sign_in()
    line = page.locator("pre").inner_text()

    assert line.startswith(f"curl {scene.url.removesuffix('/messplus/ui/')}/v1/chat/completions ")
    assert json.loads(line.partition(" -d '")[2].removesuffix("'"))["model"] == ZOO
    assert page.locator("table, .plot:visible").count() == 0
    assert_usable(opened, page)
    opened.go("details").get_by_text("Change the mode").wait_for()
    assert page.locator("h2:visible").all_inner_texts() == [f"Details of {ZOO}", "Mode"]
    assert_usable(opened, page)


@pytest.mark.parametrize("scene", ["outage_url"], indirect=True)
def test_the_requests_that_failed_say_why(opened: Opened) -> None:
    opened.sign_in()
    page = opened.go("requests")
    page.get_by_label("Outcome").select_option("failed")
    page.get_by_text("25 shown").wait_for()

    assert page.locator("#requests .chip.bad", has_text="failed: upstream").count() == 25
    assert page.locator("#requests tbody th").first.inner_text().count(":") == 2  # with seconds
