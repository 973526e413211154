"""One line for each promise, in words that need no explanation."""

from collections import Counter
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.interval import Standing
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.status.build import build_status
from litellm_messplus.status.figures import LiveLevel
from litellm_messplus.status.reading import Recent
from litellm_messplus.status.render import render, said, summary
from tests.status.test_alerts import STOPPED
from tests.support.statuses import EMPTY, KEY, rows, status, totals

MANY: dict[str, Any] = {"judged": 4000, "requests": 5000, "rate": 0.7}
NOTHING = {"judged": 0, "rate": None, "mean_alpha": None}


def line(found: Plain) -> str:
    (text,) = summary(found)
    return text


def printed(found: Plain) -> str:
    written = StringIO()
    Console(width=200, file=written).print(render(found))
    return written.getvalue()


def test_the_whole_line() -> None:
    assert line(status(**MANY)) == (
        "llama, default: 70.0 % (68.6 to 71.4 %) satisfied of 4000 judged, of 5000 answered, of "
        "5000 requests, promised 70 %: on track; "
        "routing saved 31 (77.5 %) of always calling large; finding labels cost 1; net 30; "
        "nothing to do"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": 0.8}, ": on track; "),
        ({"rate": 0.7}, ": too early; "),
        ({"rate": 0.6}, ": below; "),
        (
            NOTHING,
            "llama, default: satisfaction unknown: 0 judged, of 1000 answered, of 1000 requests, "
            "promised 70 %: too early; ",
        ),
        (
            {"mean_alpha": 0.66667, "rate": 0.8},
            "promised 66.67 % on average and 70 % now: on track; ",
        ),
        (
            {"compared_cost": 43.0},
            "; routing cost 3 (7.5 %) more than always calling large; finding labels cost 1; "
            "net -4 (for fewer labels, lower label_rate or buy_labels); ",
        ),
        (
            {"compared_cost": 36.0},
            "; routing saved 4 (10.0 %) of always calling large; finding labels cost 1; net 3; ",
        ),
        (
            {"compared_cost": 36.01},
            "; finding labels cost 1; net 2.99 (for fewer labels, lower label_rate or buy_labels)",
        ),
        ({"exploration_cost": 0.0}, "; routing saved 31 (77.5 %) of always calling large; nothing"),
        ({"compared": 0}, "; what was saved is unknown; "),
    ],
)
def test_what_it_says(changes: Any, expected: str) -> None:
    assert expected in line(status(**changes))


def test_who_failed_stands_next_to_what_was_satisfied() -> None:
    found = status(judged=240, requests=300, failed=9, failed_upstream=8, failed_client_gone=1)

    assert "of 240 judged, of 291 answered, of 300 requests, " in line(found)
    assert "; 97.0 % answered, failed 9 (upstream 8, client gone 1); " in line(found)


def test_the_sentences_of_a_promise_are_those_of_its_line() -> None:
    found = status(judged=240, requests=300, failed=9, failed_upstream=8, failed_client_gone=1)
    sentences = said(found["levels"][0], found)

    for name in ("satisfied", "money", "advice"):
        assert sentences[name] in line(found)
    hourly, _, failed = sentences["traffic"].partition("; ")
    assert hourly.endswith(" requests an hour now")
    assert failed in line(found)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": 0.8}, "nothing to do"),
        (
            {"is_out_of_reach": True, "rate": 0.6},
            "to do: lower alpha, or add a model that satisfies more",
        ),
        ({"rate": 0.6}, "to do: see the alerts"),
        ({"last": totals(rate=0.6), "rate": 0.8}, "to do: see the alerts"),
        ({"grading": STOPPED, "rate": 0.8}, "to do: see the alerts"),
        ({"counters": {"journal_failures": 1}, "rate": 0.8}, "to do: see the alerts"),
        (
            {"last": totals(rate=0.8), "rate": 0.6},
            "nothing to do: the last 1000 requests are on track",
        ),
        ({}, "nothing to do: verdicts come, wait for more"),
        ({"judged": 300}, "to do: send more feedback, or let the judge grade more"),
        ({"judged": 50, "rate": 1.0}, "to do: send more feedback, or let the judge grade more"),
        (NOTHING, "to do: send more feedback, or let the judge grade more"),
    ],
)
def test_what_to_do(changes: Any, expected: str) -> None:
    assert line(status(**changes)).endswith(f"; {expected}")


def test_a_judge_is_proposed_where_there_is_none() -> None:
    found = status(judged=50) | {"judges": []}

    assert line(found).endswith("; to do: send feedback, or switch a judge on")


def test_before_the_first_request() -> None:
    live = {KEY: LiveLevel(queue=0.0, alpha=0.8, cost_unit="usd")}
    found = build_status(EMPTY, 500, live)

    assert line(found) == "llama, default: no requests yet, promised 80 %; nothing to do"


def test_a_proxy_that_does_not_name_the_largest() -> None:
    found = status()
    (level,) = found["levels"]
    level["largest"] = None

    assert "routing saved 31 (77.5 %) of always calling the largest model;" in line(found)
    assert "saved against the largest model" in printed(found)


def test_the_verdict_is_the_same_in_the_table_and_in_json() -> None:
    found = status(**MANY)

    assert "on track" in printed(found)
    assert found["levels"][0]["overall"]["satisfaction"]["verdict"] == "on track"


def test_a_zoo_that_fails_is_not_on_track_whatever_was_measured() -> None:
    failed = Counter({Failure.UPSTREAM: 70, Failure.NO_DEPLOYMENT: 40})
    failing = {KEY: Recent(120, failed)}
    found = build_status(replace(rows(rate=0.8, is_out_of_reach=True), recent=failing), 500)

    assert [each["kind"] for each in found["alerts"]] == [AlertKind.FAILING]
    assert ": failing; " in line(found)
    assert line(found).endswith("; to do: see the alerts")
    assert {found["levels"][0]["overall"]["satisfaction"]["verdict"]} == {Standing.FAILING}
