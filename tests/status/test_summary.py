"""One line for each promise, in words that need no explanation."""

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from litellm_messplus.status.build import build_status
from litellm_messplus.status.render import render, summary
from litellm_messplus.status.report import LiveLevel, Status
from litellm_messplus.status.windows import Calls
from tests.status.test_alerts import STOPPED
from tests.support.statuses import CALLS, EMPTY, KEY, status, totals

MANY: dict[str, Any] = {"answered": 4000, "requests": 5000, "rate": 0.7}
NOTHING = {"answered": 0, "rate": None, "mean_alpha": None}


def line(found: Status) -> str:
    (text,) = summary(found)
    return text.plain


def printed(found: Status) -> str:
    written = StringIO()
    Console(width=200, file=written).print(render(found))
    return written.getvalue()


def test_the_whole_line() -> None:
    assert line(status(**MANY)) == (
        "llama, default: 70.0 % satisfied (68.6 to 71.4 %), promised 70 %: kept within 1.5 points; "
        "saved 75.0 % against always calling large; nothing to do"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": 0.8}, ": kept; "),
        ({"rate": 0.7}, ": cannot say yet; "),
        ({"rate": 0.6}, ": not kept; "),
        (NOTHING, "llama, default: no verdict on 1000 requests, promised 70 %: cannot say yet; "),
        (
            {"mean_alpha": 0.66667, "rate": 0.8},
            "promised 66.67 % on average and 70 % now: kept; ",
        ),
        ({"compared_cost": 44.0}, "; cost 10.0 % more than always calling large; "),
        ({"compared_cost": 40.0}, "; saved 0.0 % against always calling large; "),
        ({"compared": 0}, "; what was saved is unknown; "),
    ],
)
def test_what_it_says(changes: Any, expected: str) -> None:
    assert expected in line(status(**changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": 0.8}, "nothing to do"),
        (
            {"is_out_of_reach": True, "rate": 0.6},
            "to do: lower alpha, or add a model that satisfies more",
        ),
        ({"rate": 0.6}, "to do: see the alerts below"),
        ({"last": totals(rate=0.6), "rate": 0.8}, "to do: see the alerts below"),
        ({"grading": STOPPED, "rate": 0.8}, "to do: see the alerts below"),
        ({"counters": {"journal_failures": 1}, "rate": 0.8}, "to do: see the alerts below"),
        (
            {"last": totals(rate=0.8), "rate": 0.6},
            "nothing to do: the last 1000 requests kept it",
        ),
        ({}, "nothing to do: verdicts come, wait for more"),
        ({"answered": 300}, "to do: send more feedback, or let the judge grade more"),
        ({"answered": 50, "rate": 1.0}, "to do: send more feedback, or let the judge grade more"),
        (NOTHING, "to do: send more feedback, or let the judge grade more"),
    ],
)
def test_what_to_do(changes: Any, expected: str) -> None:
    assert line(status(**changes)).endswith(f"; {expected}")


def test_a_judge_is_proposed_where_there_is_none() -> None:
    found = replace(status(answered=50), judges=())

    assert line(found).endswith("; to do: send feedback, or switch a judge on")


def test_before_the_first_request() -> None:
    live = {KEY: LiveLevel(queue=0.0, alpha=0.8, cost_unit="usd")}
    found = build_status(EMPTY, 500, live)

    assert line(found) == "llama, default: no requests yet, promised 80 %; nothing to do"


def test_a_proxy_that_does_not_name_the_largest() -> None:
    found = status()
    (level,) = found.levels
    found = replace(found, levels=(replace(level, largest=None),))

    assert "saved 75.0 % against always calling the largest model;" in line(found)
    assert "saved against the largest model" in printed(found)


def test_one_figure_where_the_best_single_model_is_the_largest() -> None:
    found = status()
    assert found.levels[0].best_single.candidate == "large"

    shown = printed(found)

    assert shown.count("saved against") == 1
    assert "saved against large" in shown
    assert "large, the largest: 90.0 % satisfied, 0.04 a call" in shown


def test_each_figure_names_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Calls("small", 500, 500.0, 0.75, 0.02)
    monkeypatch.setattr("tests.support.statuses.CALLS", [CALLS[0], small])

    shown = printed(status())

    assert "saved against large" in shown
    assert "saved against small, an estimate" in shown
    assert "small: 75.0 % satisfied, 0.02 a call" in shown


def test_the_verdict_is_the_same_in_the_table() -> None:
    assert "kept within 1.5 points" in printed(status(**MANY))


def test_the_points_are_in_json_too() -> None:
    found = status(**MANY).as_dict()["levels"][0]["overall"]["satisfaction"]

    assert (found["verdict"], found["kept_within_points"]) == ("kept within", 1.5)
    other = status().as_dict()["levels"][0]["overall"]["satisfaction"]
    assert (other["verdict"], other["kept_within_points"]) == ("cannot say yet", None)
