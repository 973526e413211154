"""The page in a real browser: what hostile words do (nothing), and who can use it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from litellm_messplus.status.newest import INCIDENTS
from tests.page.seeded import HOSTILE
from tests.page.serving import KEY, ServedPage
from tests.support.patience import PATIENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.end_to_end

SIZES = {"desktop": (1280, 900), "phone": (375, 800)}
EXPECTED = "401 (Unauthorized)"
"""Said by the browser itself of the first question, before anybody has signed in."""


class Opened:
    """A page, and all that the browser complained of."""

    def __init__(self, context: "BrowserContext", url: str) -> None:
        context.set_default_timeout(1000 * PATIENT)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(url)

    def sign_in(self) -> "Page":
        """By a key; returns the page when all of it is there."""
        self.page.get_by_label("Key of an administrator of the proxy").fill(KEY)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Calibration").wait_for()
        return self.page

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning") and EXPECTED not in message.text:
            self.complaints.append(message.text)


@pytest.fixture(params=[("light", "desktop"), ("dark", "desktop"), ("light", "phone")], ids=str)
def opened(
    request: pytest.FixtureRequest, browser: "Browser", page: ServedPage
) -> Iterator[Opened]:
    theme, size = request.param
    width, height = SIZES[size]
    context = browser.new_context(
        color_scheme=theme, viewport={"width": width, "height": height}, bypass_csp=False
    )
    yield Opened(context, page.url)
    context.close()


@pytest.fixture
def desktop(browser: "Browser", page: ServedPage) -> Iterator[Opened]:
    context = browser.new_context()
    yield Opened(context, page.url)
    context.close()


def violations(page: "Page") -> list[str]:
    """What axe finds, each with the first element that it is about."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


def test_axe_finds_nothing(opened: Opened) -> None:
    assert violations(opened.page) == []
    page = opened.sign_in()
    for summary in page.locator("summary:visible").all():  # what is empty is not shown
        summary.click()
    assert violations(page) == []
    page.locator("#requests tbody button").first.click()
    page.locator("dialog[open]").wait_for()
    assert violations(page) == []
    assert opened.complaints == []


def test_it_is_no_wider_than_the_screen(opened: Opened) -> None:
    page = opened.sign_in()

    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_hostile_words_are_shown_as_words(desktop: Opened) -> None:
    page = desktop.sign_in()
    reasons = page.locator("#requests tbody tr td.words").all_text_contents()

    assert reasons[: len(HOSTILE)] == list(HOSTILE)
    for place, words in enumerate(HOSTILE):
        page.locator("#requests tbody th button").nth(place).click()
        dialog = page.locator("dialog[open]")
        dialog.wait_for()
        prompt, answer = dialog.locator("pre").all_text_contents()
        assert (prompt, answer) == (words, words)
        assert words in dialog.locator("td.words").all_text_contents()
        assert words in dialog.locator("dl.summary").inner_text()  # who asked
        assert words in dialog.locator("p.reason").nth(1).inner_text()  # who could take it
        page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator("main iframe, main script, main style, main form[action], object").count() == 0
    )
    assert page.url.startswith(desktop.page.url.partition("#")[0])
    assert desktop.complaints == []


def test_a_script_that_gets_in_all_the_same_is_not_run(desktop: Opened) -> None:
    page = desktop.sign_in()
    page.evaluate(
        """() => new Promise((resolve) => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            document.body.append(script);
            const image = "<img src=x onerror='window.hacked = 1'>";
            document.body.insertAdjacentHTML("beforeend", image);
            document.body.lastElementChild.addEventListener("error", () => resolve());
        })"""
    )

    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in desktop.complaints)


def test_a_link_signs_in_once_and_leaves_no_code(browser: "Browser", page: ServedPage) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    code = httpx.post(f"{page.url}codes", headers=headers, timeout=PATIENT).json()["code"]
    first, second = browser.new_context(), browser.new_context()
    opened = Opened(first, f"{page.url}#code={code}")
    opened.page.get_by_role("heading", name="Calibration").wait_for()

    assert code not in opened.page.url
    again = Opened(second, f"{page.url}#code={code}")
    again.page.get_by_text("this code was used, or is too old").wait_for()
    assert opened.page.evaluate("document.cookie") == ""
    first.close()
    second.close()


def test_a_wrong_key_is_reported_as_wrong(desktop: Opened) -> None:
    desktop.page.get_by_label("Key of an administrator of the proxy").fill("sk-wrong")
    desktop.page.get_by_role("button", name="Sign in").click()

    desktop.page.get_by_text("Not signed in: only an administrator").wait_for()


def test_signing_out_takes_the_data_away(desktop: Opened) -> None:
    page = desktop.sign_in()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("You are signed out.").wait_for()

    assert page.locator(".promise").count() == 0
    page.reload()
    page.get_by_role("heading", name="Sign in").wait_for()


def test_all_of_it_works_by_keyboard(desktop: Opened) -> None:
    page = desktop.sign_in()

    page.locator(".skip").focus()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className"
                " || document.activeElement.textContent.trim().slice(0, 20)"
            )
        )
    for name in ("theme", "sign-out", "promise-0", "range-30", "plot", "filter-model", "link"):
        assert name in reached, reached

    page.locator(".plot").first.focus()
    page.keyboard.press("End")
    live = page.locator(".chart [aria-live]").first
    assert "satisfied" in (live.text_content() or "")
    page.locator("#promise-0").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="llama, gold", exact=True).wait_for()
    assert "level=gold" in page.url


def test_the_choice_of_a_theme_stays(desktop: Opened) -> None:
    page = desktop.page
    page.get_by_role("button", name="Dark theme").click()
    page.reload()

    page.get_by_role("button", name="Light theme").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_filters_and_ranges_ask_for_what_they_name(desktop: Opened) -> None:
    page = desktop.sign_in()
    page.get_by_label("Verdict", exact=True).select_option("unsatisfied")
    page.locator("#requests tbody .chip.good").first.wait_for(state="detached")
    page.locator("#requests tbody .chip.bad").first.wait_for()
    assert page.locator("#requests tbody .chip.good").count() == 0

    with page.expect_response(lambda answer: "days=7" in answer.url) as answered:
        page.get_by_label("7 days").check()
    assert answered.value.ok
    assert "range=7" in page.url


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("owed", [-2.22e-14], "0"),
        ("owed", [3.123456], "3.12"),
        ("owed", [-3.2], "\u22123.2"),
        ("owed", [None], "unknown"),
        ("cost", [-2.22e-14, "usd"], "$0"),
        ("cost", [-0.25, "usd"], "\u2212$0.25"),
        ("cost", [-0.0, "joule"], "0 J"),
        ("cost", [-2500, "joule"], "\u22122.5 kJ"),
    ],
)
def test_figures_are_shown_without_the_digits_that_sums_leave_and_zeros_without_a_sign(
    desktop: Opened, name: str, value: list[object], shown: str
) -> None:
    script = """async ([name, value]) => {
        const link = document.querySelector("link[href*='format.js']");
        return (await import(link.href))[name](...value);
    }"""

    assert desktop.page.evaluate(script, [name, value]) == shown


def test_what_is_proved_and_what_labels_cost_are_shown(desktop: Opened) -> None:
    page = desktop.sign_in()
    assert page.locator("#certificate table").count() == 0  # read when it is opened

    page.locator("#certificate summary").click()

    page.locator("#certificate tbody tr").nth(1).wait_for()
    shown = page.locator("#certificate").inner_text()
    assert "the last 500 requests" in shown
    assert "response_bias" in shown or "users" in shown
    costs = page.locator("#labels").inner_text()
    assert "calls that no user saw" in costs
    assert "saved by routing" in costs
    assert desktop.complaints == []


def test_what_holds_conversations_is_shown_where_there_are_some(desktop: Opened) -> None:
    page = desktop.sign_in()
    shown = page.locator("#conversations")

    assert "began of 1.7 turns and" in shown.locator("p").inner_text()
    (row,) = shown.locator("tbody tr").all()  # no row for a reason that held none
    cells = row.locator("th, td").all_text_contents()
    assert cells[0] == "where the prompt cache is warm"
    assert int(cells[1].replace(",", "")) > 500


def test_the_keys_that_caused_most_are_shown(desktop: Opened) -> None:
    """The seeded traffic has none: they are put into what the server answers."""
    names = (each.path for each in INCIDENTS)
    values = ("llama", "0123456789abcdef", 41, 7, 0, 9, 9, 0)
    own = dict(zip(names, values, strict=True))

    def with_keys(route: Any) -> None:
        found = route.fetch().json()
        assert found["incidents"] == []
        route.fulfill(json={**found, "incidents": [own, {**own, "zoo": "another"}]})

    desktop.page.route("**/overview", with_keys)
    rows = desktop.sign_in().locator("#incidents tbody tr")

    (row,) = rows.all()
    cells = row.locator("th, td").all_text_contents()
    assert cells == ["01234567…", "41", "7", "9", "9"]  # no column of nothing but zeros
    assert desktop.complaints == []


def test_a_chart_has_its_data_as_a_table(desktop: Opened) -> None:
    page = desktop.sign_in()
    chart = page.locator(".chart").first
    chart.get_by_text("Data as a table").click()

    assert chart.locator("caption").text_content() == "Satisfied, against the promise"
    assert chart.locator("tbody tr").count() >= 24
    assert chart.locator("th[scope=col]").count() == 5
