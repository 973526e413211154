"""The page in a real browser: what hostile words do (nothing), and who can use it."""

import csv
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from litellm_messplus.figures.templates import in_line
from tests.page.seeded import HOSTILE
from tests.page.serving import KEY, ServedPage
from tests.support.patience import PATIENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.end_to_end

SIZES = {"desktop": (1440, 900), "phone": (375, 800)}
SCREENS = ("promise", "requests", "details")
INSIDERS = re.compile(r"queue|nats|log-odds|log-loss|behind alpha", re.IGNORECASE)
"""Words that no manager knows."""
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
        self.page.locator("#content[data-shown=promise]").wait_for()
        return self.page

    def go(self, screen: str) -> "Page":
        """To another screen; returns the page when all of it is there."""
        self.page.locator(f"a[data-screen={screen}]").click()
        self.page.locator(f"#content[data-shown={screen}]").wait_for()
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
    width, height = SIZES["desktop"]
    context = browser.new_context(viewport={"width": width, "height": height})
    yield Opened(context, page.url)
    context.close()


def violations(page: "Page") -> list[str]:
    """What axe finds, each with the first element that it is about."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_and_all_is_as_wide_as_the_screen(opened: Opened, screen: str) -> None:
    assert violations(opened.page) == []
    opened.sign_in()
    page = opened.go(screen)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for summary in page.locator("summary:visible").all():  # what is empty is not shown
        summary.click()
    assert violations(page) == []
    if screen == "requests":
        page.locator("#requests tbody button").first.click()
        page.locator("dialog[open]").wait_for()
        assert violations(page) == []
    assert opened.complaints == []


def test_no_word_is_for_insiders(desktop: Opened) -> None:
    desktop.sign_in()

    for screen in SCREENS:
        page = desktop.go(screen)
        for summary in page.locator("summary:visible").all():
            summary.click()
        assert INSIDERS.findall(page.locator("body").inner_text()) == [], screen
    page = desktop.go("requests")
    page.locator("#requests tbody th button").last.click()
    assert INSIDERS.findall(page.locator("dialog[open]").inner_text()) == []


def test_the_promise_is_one_screen_without_scrolling(desktop: Opened) -> None:
    page = desktop.sign_in()

    for place in (0, 1):
        page.locator(f"#promise-{place}").check()
        page.locator("#promise .chart:visible").nth(1).wait_for()
        assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
        bottoms = page.locator("#promise .plot canvas").evaluate_all(
            "all => all.map((each) => each.getBoundingClientRect().bottom)"
        )
        assert len(bottoms) == 2
        assert max(bottoms) < 900


def test_the_sentences_are_those_of_the_server(desktop: Opened, page: ServedPage) -> None:
    shown = desktop.sign_in()
    headers = {"authorization": f"Bearer {KEY}"}
    found = httpx.get(f"{page.url}data/overview", headers=headers, timeout=PATIENT).json()
    said = found["levels"][0]["said"]

    sentences = [said[name] for name in ("satisfied", "money", "traffic")]
    assert shown.locator(".fact-said").all_text_contents() == sentences


def test_hostile_words_are_shown_as_words(desktop: Opened) -> None:
    desktop.sign_in()
    page = desktop.go("requests")
    reasons = page.locator("#requests tbody tr td.words").all_text_contents()

    assert reasons[: len(HOSTILE)] == list(HOSTILE)
    for place, words in enumerate(HOSTILE):
        page.locator("#requests tbody th button").nth(place).click()
        dialog = page.locator("dialog[open]")
        dialog.wait_for()
        prompt, answer = dialog.locator("pre").all_text_contents()
        assert (prompt, answer) == (words, words)
        assert in_line(words).strip() in dialog.locator("td.words").all_text_contents()
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
    opened.page.locator("#content[data-shown=promise]").wait_for()

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
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className"
                " || document.activeElement.textContent.trim().slice(0, 20)"
            )
        )
    for name in ("Requests", "theme", "sign-out", "promise-0", "range-30", "plot", "link csv"):
        assert name in reached, reached

    page.locator(".plot").first.focus()
    page.keyboard.press("End")
    live = page.locator(".chart [aria-live]").first
    assert "satisfied" in (live.text_content() or "")
    page.locator("#promise-0").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="llama, gold", exact=True).wait_for()
    assert "level=gold" in page.url


def test_one_hover_is_over_all_charts(desktop: Opened) -> None:
    page = desktop.sign_in()
    times = page.locator(".chart-at")
    newest = times.all_inner_texts()
    page.locator("#promise .u-over").first.hover(position={"x": 80, "y": 60})

    first, second = times.all_inner_texts()
    assert first == second != newest[0]


def test_what_is_shown_can_be_had_as_csv(desktop: Opened) -> None:
    desktop.sign_in()
    for screen, title, column in (
        ("promise", "Satisfied, against the promise", "satisfied"),
        ("requests", "Requests", "reason"),
        ("details", "spend by key and team, of the newest 5,000 requests", "cost"),
    ):
        page = desktop.go(screen)
        with page.expect_download() as saved:
            page.get_by_label(f"CSV: {title}", exact=True).click()
        with saved.value.path().open(newline="") as file:
            names, *rows = csv.reader(file)
        assert column in names
        assert len(rows) >= 5
        assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_the_colour_of_a_model_stays(desktop: Opened) -> None:
    desktop.sign_in()
    page = desktop.go("details")
    found = set()
    for days in ("newest", "1", "30"):
        with page.expect_response("**/data/details*"):
            page.locator(f"#range-{days}").check()
        page.locator(".chart .legend li").first.wait_for()
        marks = page.locator(".chart").first.locator(".legend li")
        read = "all => all.map(({ childNodes: [mark, name] }) => [name.data, mark.className])"
        found |= {(name, colour) for name, colour in marks.evaluate_all(read)}

    assert len(found) == len({name for name, _ in found}) == 3


def test_the_choice_of_a_theme_stays(desktop: Opened) -> None:
    page = desktop.page
    page.get_by_role("button", name="Dark theme").click()
    page.reload()

    page.get_by_role("button", name="Light theme").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_filters_and_ranges_ask_for_what_they_name(desktop: Opened) -> None:
    desktop.sign_in()
    page = desktop.go("requests")
    page.get_by_label("Outcome", exact=True).select_option("unsatisfied")
    page.locator("#requests tbody .chip.good").first.wait_for(state="detached")
    page.locator("#requests tbody .chip.bad").first.wait_for()
    assert page.locator("#requests tbody .chip.good").count() == 0

    desktop.go("promise")
    with page.expect_response(lambda answer: "days=7" in answer.url) as answered:
        page.get_by_label("7 days").check()
    assert answered.value.ok
    assert "range=7" in page.url


def test_a_cost_is_shown_without_the_digits_that_sums_leave(desktop: Opened) -> None:
    given = [[-2.22e-14, "usd"], [-0.25, "usd"], [-0.0, "joule"], [-2500, "joule"]]
    script = """async (given) => {
        const { cost } = await import(document.querySelector("link[href*='format.js']").href);
        return given.map((each) => cost(...each));
    }"""

    assert desktop.page.evaluate(script, given) == ["$0", "\u2212$0.25", "0 J", "\u22122.5 kJ"]


def test_the_details_show_models_labels_spend_and_what_is_proved(desktop: Opened) -> None:
    desktop.sign_in()
    page = desktop.go("details")
    captions = page.locator("caption").all_inner_texts()
    assert page.locator("#certificate table").count() == 0  # read when it is opened

    page.locator("#certificate summary").click()

    page.locator("#certificate tbody tr").nth(1).wait_for()
    shown = page.locator("#certificate").inner_text()
    assert "the last 500 requests" in shown
    assert "response_bias" in shown or "users" in shown
    for about in ("models", "predictions against verdicts", "what each source says",
                  "what labels cost", "spend by key and team", "conversations"):  # fmt: skip
        assert any(about in caption for caption in captions), about


def test_a_chart_has_its_data_as_a_table(desktop: Opened) -> None:
    page = desktop.sign_in()
    chart = page.locator(".chart").first
    chart.get_by_text("Data as a table").click()

    assert chart.locator("caption").text_content() == "Satisfied, against the promise"
    assert chart.locator("tbody tr").count() >= 24
    assert chart.locator("th[scope=col]").count() == 4
