"""What a demo says in the end."""

from typing import Any

import pytest
from rich.console import Console

from litellm_messplus.demo.report import Report, table
from litellm_messplus.demo.session import Reported, Sent


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


def shown(report: Report) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table(report))
    return capture.get()


def test_satisfaction_is_the_truth_and_not_what_was_reported() -> None:
    report = Report.of("feedback:0.5", SENT, OUTCOMES, Reported(2, 0.5, 0.1, 0.9))

    assert report.as_dict() == {
        "alpha": 0.8,
        "satisfaction": 0.75,
        "labels": "feedback:0.5",
        "labelled": 0.5,
        "satisfaction_reported": 0.5,
        "satisfaction_low": 0.1,
        "satisfaction_high": 0.9,
        "cost": 4.0,
        "cost_largest": 16.0,
        "model_mix": {"small": 0.75, "large": 0.25},
        "explorations": 1,
        "requests": 4,
        "unrouted": 0,
        "queue": 0.75,
    }


@pytest.mark.parametrize(
    "words", ["75.0%", "50.0% (10.0% to 90.0%)", "--labels feedback:0.5", "served by small"]
)
def test_the_table_shows_both(words: str) -> None:
    report = Report.of("feedback:0.5", SENT, OUTCOMES, Reported(2, 0.5, 0.1, 0.9))

    assert words in shown(report)


def test_what_nobody_reported_is_unknown() -> None:
    assert "unknown" in shown(Report.of("judge", SENT, OUTCOMES, Reported()))


def test_requests_that_were_not_routed_are_told() -> None:
    report = Report.of("all", SENT, OUTCOMES, Reported(), unrouted=3)

    assert (report.requests, report.unrouted) == (4, 3)
    assert "left to LiteLLM" in shown(report)
    assert "left to LiteLLM" not in shown(Report.of("all", SENT, OUTCOMES, Reported()))
