"""The page of a zoo without requests, of one that is watched, and of an outage, in a browser."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.page.scenes import FAILED, SERVED
from tests.page.seeded import ZOO
from tests.page.serving import KEY, ServedPage
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
def test_an_outage_shows_the_answered_share_in_red(scene: ServedPage, opened: Opened) -> None:
    """And what was not routed, as a notice."""
    scene.unrouted = [{"zoo": ZOO, "call_type": "image_generation", "answers": 1_200}]
    page = opened.sign_in()
    card = page.locator(".promise").first
    share = f"{100 * SERVED / (SERVED + FAILED):.1f} %"

    assert card.locator(".chip.bad").inner_text() == "failing"
    red = card.locator(".failed")
    assert red.inner_text() == share
    assert red.evaluate("node => getComputedStyle(node).color") in (
        "rgb(180, 35, 24)",
        "rgb(255, 143, 133)",
    )
    assert f"{FAILED} of {SERVED + FAILED} failed" in card.inner_text()
    assert page.get_by_text(f"{share} of {SERVED + FAILED} answered").is_visible()
    assert page.locator(".chip.good").count() == 0
    notice = page.locator(".alerts .notice").last.inner_text()
    assert notice.split("\n") == [ZOO, "1,200 requests by image_generation were not routed"]
    assert_usable(opened, page)


@pytest.mark.parametrize("scene", ["watched_url"], indirect=True)
def test_a_watched_zoo_shows_what_is_now_next_to_the_forecast(opened: Opened) -> None:
    page = opened.sign_in()
    page.get_by_text("The forecast is from").wait_for()
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.locator("#before tbody tr").all()
    }

    assert page.locator(".promise .chip").first.inner_text() == "watched"
    now, forecast = rows["satisfied"]
    assert now.endswith("judged")
    assert "%" in forecast
    assert all(cell.startswith("$") for cell in rows["cost a request"])
    with_reading = rows["with second_answer: auto"][1]
    assert "% replaced" in with_reading
    assert "% of the cost saved" in with_reading
    assert with_reading.endswith("a time not known yet more on average")  # one was never called
    assert rows["answered"][0] == "95.0 %"
    assert "requests" in rows["traffic"][0]
    assert page.locator("#requests tbody tr").count() == 25
    assert page.locator("#requests .chip", has_text="as before").count() == 25
    assert not page.get_by_role("heading", name="The queue").is_visible()
    labels = page.locator("#labels").inner_text()
    assert "calls that no user saw" in labels
    assert "saved by routing" not in labels  # nothing was routed
    assert_usable(opened, page)


@pytest.mark.parametrize("scene", ["empty_url"], indirect=True)
def test_without_requests_nothing_empty_is_shown(opened: Opened) -> None:
    opened.page.get_by_label("Key of an administrator of the proxy").fill(KEY)
    opened.page.get_by_role("button", name="Sign in").click()
    page = opened.page
    page.get_by_text(f"No requests yet: {ZOO} (promised 80 %)").wait_for()
    page.get_by_text("Change the mode").wait_for()

    assert [each.inner_text() for each in page.locator("h2:visible").all()] == ["Promises", "Mode"]
    assert page.locator("table").count() == 0
    assert_usable(opened, page)


@pytest.mark.parametrize("scene", ["outage_url"], indirect=True)
def test_times_have_seconds_and_axes_have_names_and_round_ticks(opened: Opened) -> None:
    page = opened.sign_in()
    time = page.locator("#requests tbody th").first.inner_text()
    ticks = page.locator(".chart", has_text="The queue").locator("text").all_text_contents()

    assert time.count(":") == 2
    assert "number of the request" in ticks
    assert "satisfied requests owed" in ticks
    assert "100" in ticks
