"""What a demo says in the end."""

from typing import Any

import pytest
from rich.console import Console

from litellm_messplus.demo.report import (
    JOULES,
    SHORT,
    DemoReport,
    Judging,
    Yardsticks,
    table,
)
from litellm_messplus.demo.session import Reported, Sent
from litellm_messplus.status.queries import Totals
from litellm_messplus.status.report import Labels
from litellm_messplus.status.windows import window_status


def outcome(served: str, satisfaction: float | None, **more: Any) -> dict[str, Any]:
    """A request as the proxy shows it."""
    result = {"served": served, "satisfaction": satisfaction, "cost": 1.0, "cost_largest": 4.0}
    return {"outcome": result, "alpha": 0.8, "is_exploration": False, "queue": 0.5, **more}


OUTCOMES = [
    outcome("small", 1.0),
    outcome("large", None, is_exploration=True),
    outcome("small", 0.0),
    outcome("small", None, queue=0.75),
]
SENT = [Sent(f"r{place}", satisfied) for place, satisfied in enumerate((True, True, False, True))]


NOTHING_REPORTED = Reported()
NOT_ASKED = Yardsticks()


def report_of(
    labels: str = "all",
    reported: Reported = NOTHING_REPORTED,
    unrouted: int = 0,
    yardsticks: Yardsticks = NOT_ASKED,
) -> DemoReport:
    return DemoReport.of(labels, SENT, OUTCOMES, reported, unrouted, yardsticks)


def promising(alpha: float, times: int) -> DemoReport:
    """Three of each four requests are satisfied in it."""
    outcomes = [{**outcome, "alpha": alpha} for outcome in OUTCOMES * times]
    return DemoReport.of("all", SENT * times, outcomes, NOTHING_REPORTED, 0, NOT_ASKED)


def row(report: DemoReport, name: str) -> str:
    """The line of the table that says so."""
    (found,) = (line for line in shown(report).splitlines() if name in line)
    return found


def shown(report: DemoReport) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table(report))
    return capture.get()


def test_satisfaction_is_the_truth_and_not_what_was_reported() -> None:
    report = report_of("feedback:0.5", Reported(2, 0.5, 0.1, 0.9))

    assert report.as_dict() == {
        "alpha": 0.8,
        "satisfaction": 0.75,
        "low": pytest.approx(0.3006, abs=1e-4),
        "high": pytest.approx(0.9544, abs=1e-4),
        "verdict": "cannot say yet",
        "kept_within_points": None,
        "labels": "feedback:0.5",
        "labelled": 0.5,
        "satisfaction_reported": 0.5,
        "satisfaction_low": 0.1,
        "satisfaction_high": 0.9,
        "cost": 4.0,
        "cost_largest": 16.0,
        "cost_unit": None,
        "cost_hindsight_mix": None,
        "times_hindsight_mix": None,
        "cost_oracle": None,
        "times_oracle": None,
        "hindsight_note": "not asked: --ask-all",
        "model_mix": {"small": 0.75, "large": 0.25},
        "explorations": 1,
        "requests": 4,
        "unrouted": 0,
        "queue": 0.75,
        "cost_judging": None,
        "times_largest": None,
        "times_largest_first_half": None,
        "times_largest_second_half": None,
    }


def test_what_judges_cost_is_added_to_each_half() -> None:
    judging = Judging(before=1.0, half=5.0, after=7.0)
    report = DemoReport.of("auto", SENT, OUTCOMES, NOTHING_REPORTED, 0, NOT_ASKED, judging)

    assert report.cost_judging == 6.0
    assert report.times_largest_first_half == (2.0 + 4.0) / 8.0
    assert report.times_largest_second_half == (2.0 + 2.0) / 8.0
    assert report.times_largest == (4.0 + 6.0) / 16.0
    assert "37.5 %" in row(report, "saved, judging paid")


@pytest.mark.parametrize(
    "words", ["75.0 %", "50.0 % (10.0 to 90.0 %)", "--labels feedback:0.5", "served by small"]
)
def test_the_table_shows_both(words: str) -> None:
    report = report_of("feedback:0.5", Reported(2, 0.5, 0.1, 0.9))

    assert words in shown(report)


def test_what_nobody_reported_is_unknown() -> None:
    assert "unknown" in row(report_of("judge"), "satisfied by the labels")


def test_requests_that_were_not_routed_are_told() -> None:
    report = report_of(unrouted=3)

    assert (report.requests, report.unrouted) == (4, 3)
    assert "left to LiteLLM" in shown(report)
    assert "left to LiteLLM" not in shown(report_of())


@pytest.mark.parametrize("alpha", [0.25, 0.7, 0.75, 0.77, 0.9])
@pytest.mark.parametrize("times", [1, 80, 400])
def test_the_verdict_is_that_of_the_status_on_the_same_requests(alpha: float, times: int) -> None:
    """Three of four are satisfied, and all say so."""
    report = promising(alpha, times)
    count = 4 * times
    totals = Totals(
        requests=count,
        counted=count,
        labelled=count,
        answered=count,
        effective=float(count),
        rate=0.75,
        mean_alpha=alpha,
        cost=4.0,
        priced=count,
        priced_cost=4.0,
        explorations=0,
        exploration_cost=0.0,
        compared=0,
        compared_cost=0.0,
        compared_cost_largest=0.0,
    )
    of_status = window_status(totals, 0, alpha, Labels(0, None, ()), None).satisfaction

    assert (report.verdict, report.low, report.high) == (
        of_status.verdict,
        of_status.low,
        of_status.high,
    )
    assert "75.0 %" in row(report, f"│ {of_status.verdict_in_words}: share satisfied")


def test_our_cost_is_set_against_what_is_known_afterwards() -> None:
    found = report_of(yardsticks=Yardsticks(3.2, 2.5, None)).as_dict()

    assert (found["cost"], found["cost_hindsight_mix"], found["cost_oracle"]) == (4.0, 3.2, 2.5)
    assert (found["times_hindsight_mix"], found["times_oracle"]) == pytest.approx((1.25, 1.6))
    assert found["hindsight_note"] is None


def test_the_table_shows_what_is_known_afterwards() -> None:
    text = shown(report_of(yardsticks=Yardsticks(3.2, 2.5, None)))

    assert all(words in text for words in ("3.2", "1.25", "2.5", "1.6"))
    assert "in hindsight" not in text


@pytest.mark.parametrize("name", ["hindsight mix", "oracle"])
@pytest.mark.parametrize("yardsticks", [NOT_ASKED, Yardsticks(note=JOULES)])
def test_why_nothing_is_known_afterwards_is_told(name: str, yardsticks: Yardsticks) -> None:
    report = report_of(yardsticks=yardsticks)

    assert str(yardsticks.note) in row(report, f"cost of the {name}")
    assert "as a multiple" not in shown(report)


def test_a_mix_that_misses_the_promise_is_told() -> None:
    report = report_of(yardsticks=Yardsticks(3.2, 2.5, SHORT))

    assert SHORT in row(report, "in hindsight")
    assert "3.2" in row(report, "hindsight mix")


def test_nothing_is_a_multiple_of_what_costs_nothing() -> None:
    found = report_of(yardsticks=Yardsticks(0.0, 0.0, None)).as_dict()

    assert (found["cost_oracle"], found["times_oracle"]) == (0.0, None)
