"""The gauges: named as declared, and never a number for what is unknown."""

from dataclasses import replace

from litellm_messplus.figures.figure import Series
from litellm_messplus.status.build import build_status
from litellm_messplus.status.figures import MEANINGS, gauges
from tests.support.statuses import rows, status, totals

LEVEL = {"zoo": "llama", "service_level": "default"}


def test_the_figures_are_there() -> None:
    found = gauges(status(rate=0.6))

    def value(metric: str, **labels: str) -> float:
        return found[Series.of(metric, **labels)]

    assert value("messplus_alpha", **LEVEL) == 0.7
    assert value("messplus_queue", **LEVEL) == 1.5
    assert value("messplus_satisfaction", **LEVEL, window="all") == 0.6
    assert value("messplus_cost_per_request", **LEVEL, window="last") == 0.01
    assert value("messplus_saved_share_largest", **LEVEL, window="all") == 0.75
    assert value("messplus_alert", kind="below", **LEVEL) == 1.0
    assert value("messplus_alerts") == 1.0
    source = {**LEVEL, "window": "all", "source": "judge"}
    assert value("messplus_source_satisfaction", **source) == 0.8
    assert value("messplus_source_counting", **source) == 400.0
    assert value("messplus_labelled_share", **LEVEL, window="last") == 0.9
    assert value("messplus_judge_cost", zoo="llama", judge="gpt-judge") == 1.25
    assert value("messplus_predicting_seconds", **LEVEL, window="all") == 0.002


def test_what_is_unknown_has_no_gauge() -> None:
    found = gauges(status(judged=0, rate=None, mean_alpha=None, priced=0, cost=0.0, compared=0))
    names = {series.metric for series in found}

    assert not names & {"messplus_satisfaction", "messplus_satisfaction_low", "messplus_cost"}
    assert not names & {"messplus_cost_per_request", "messplus_saved_share_largest"}


def test_every_declared_gauge_is_there() -> None:
    before = totals(requests=400, judged=350, rate=0.9)
    log = rows(rate=0.6)
    span = replace(log.last, totals={**log.last.totals, ("llama", "default:before"): before})
    found = build_status(replace(log, last=span), 500)

    assert {series.metric for series in gauges(found)} == MEANINGS.keys()
    assert found["levels"][0]["as_before"]["requests"] == 400
