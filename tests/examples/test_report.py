"""What a demo says in the end."""

from typing import Any

import pytest
from rich.console import Console

from examples.tiny_zoo.demo.report import JOULES, DemoReport, Judging, Yardsticks, table
from examples.tiny_zoo.demo.session import Reported, Sent


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
    labels: str = "all", reported: Reported = NOTHING_REPORTED, yardsticks: Yardsticks = NOT_ASKED
) -> DemoReport:
    return DemoReport.of(labels, SENT, OUTCOMES, reported, 0, yardsticks)


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
        "verdict": "too early",
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
        "alone": {},
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
    ("alpha", "times", "words"),
    [
        (0.7, 400, "on track:"),
        (0.9, 400, "below:"),
        (0.8, 1, "too early:"),
        (0.75, 400, "on track:"),
    ],
)
def test_the_verdict_is_by_the_rule_of_the_status(alpha: float, times: int, words: str) -> None:
    """Three of four are satisfied: surely more, surely less, or within the interval."""
    assert "75.0 %" in row(promising(alpha, times), f"│ {words}")


def test_the_table_shows_what_is_known_afterwards() -> None:
    text = shown(report_of(yardsticks=Yardsticks(3.2, 2.5, None)))

    assert all(words in text for words in ("3.2", "1.25", "2.5", "1.6"))
    assert "in hindsight" not in text


def test_why_nothing_is_known_afterwards_is_told() -> None:
    report = report_of(yardsticks=Yardsticks(note=JOULES))

    assert JOULES in row(report, "cost of the oracle")
    assert "as a multiple" not in shown(report)
