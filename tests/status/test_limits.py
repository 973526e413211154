"""What the status shows of limits besides alpha: which one binds, and what to look at."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from litellm_messplus.routing.limits import AHEAD_SECONDS, DAY, Limits
from litellm_messplus.state.entries import LimitedUse
from litellm_messplus.state.limits import logged
from litellm_messplus.status.alerts import level_alerts
from litellm_messplus.status.gauges import Series, gauges
from litellm_messplus.status.render import render, summary
from litellm_messplus.status.report import AlertKind, LevelStatus, Status
from tests.support import statuses

NOON = statuses.LIMITS


def level(figures: dict[str, Any] | None, **changes: float) -> LevelStatus:
    return of(figures, **changes).levels[0]


def of(figures: dict[str, Any] | None, **changes: Any) -> Status:
    return statuses.status(limits=figures, **changes)


def head(status: Status) -> str:
    return next(iter(summary(status))).plain


def test_a_level_without_limits_says_nothing_of_them() -> None:
    found = of(None)
    assert found.levels[0].limits is None
    assert "binds" not in head(found)


def test_the_line_of_the_promise_says_that_latency_binds() -> None:
    assert "latency binds: 6.0 % took longer than 2 s" in head(of(NOON))


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.688, "budget binds: alpha is missed by 1.2 points"), (0.71, "budget binds: alpha is held")],
)
def test_the_line_of_the_promise_says_that_the_budget_binds(rate: float, words: str) -> None:
    assert words in head(of(NOON | {"binding": "budget"}, rate=rate))


BINDS = NOON | {"binding": "budget", "late": 0}


@pytest.mark.parametrize(
    ("kind", "figures", "changes", "is_raised"),
    [
        (AlertKind.BUDGET_BINDS, BINDS, {"rate": 0.688}, True),
        (AlertKind.BUDGET_BINDS, BINDS, {"rate": 0.71}, False),
        (AlertKind.BUDGET_BINDS, BINDS | {"binding": None}, {"rate": 0.688}, False),
        (AlertKind.BUDGET_BINDS, BINDS, {"rate": 0.688, "judged": 50}, False),
        (AlertKind.OVER_BUDGET, NOON | {"spent": 10.3}, {}, True),
        (AlertKind.OVER_BUDGET, NOON | {"spent": 10.1}, {}, False),  # by the last requests
        (AlertKind.TOO_LATE, NOON | {"late": 40}, {}, True),
        (AlertKind.TOO_LATE, NOON, {}, False),  # not for sure
        (AlertKind.TOO_LATE, NOON | {"late": 0, "ended": 0}, {}, False),
    ],
)
def test_an_alert_comes_where_alpha_is_missed_for_its_sake_or_a_limit_surely_broken(
    kind: AlertKind, figures: dict[str, Any], changes: dict[str, float], is_raised: bool
) -> None:
    raised = {alert.kind for alert in level_alerts(level(figures, **changes))}
    assert (kind in raised) is is_raised


def test_the_tables_have_a_row_for_each_limit_and_say_what_binds() -> None:
    written = StringIO()
    Console(width=200, file=written).print(render(of(NOON)))
    text = written.getvalue()
    given_out = 10.0 * (0.5 + AHEAD_SECONDS / DAY)
    for words in (
        "longer than 2 s",
        "6.0 % (4.2 to 8.4 %), 5.0 % may",
        f"4 of 10, {given_out:.4g} given out so far",
        "what binds",
    ):
        assert words in text


def test_a_limit_that_is_not_set_has_no_row() -> None:
    newest = logged(Limits(budget=10.0, allowed=4.0), LimitedUse(0.05, 1.0))
    found = level(NOON | {"newest": newest}).limits
    assert found is not None
    assert (found.latency, found.budget is None) == (None, False)


def test_it_goes_through_json() -> None:
    found = of(NOON)
    assert Status.of(found.as_dict()) == found
    assert found.as_dict()["levels"][0]["limits"]["latency"]["late_share"] == 0.06


def test_each_figure_has_a_gauge() -> None:
    found = gauges(of(NOON))
    whose = {"zoo": statuses.KEY[0], "service_level": statuses.KEY[1]}
    assert found[Series.of("messplus_late_share", **whose)] == 0.06
    assert found[Series.of("messplus_budget", **whose)] == 10.0
    assert found[Series.of("messplus_budget_spent", **whose)] == 4.0
