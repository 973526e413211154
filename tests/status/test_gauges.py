"""The gauges: named as declared, and never a number for what is unknown."""

from litellm_messplus.figures.figure import Series
from litellm_messplus.status.figures import MEANINGS, gauges
from tests.support.statuses import status

LEVEL = {"zoo": "llama", "level": "default"}


def test_the_figures_are_there() -> None:
    found = gauges(status(rate=0.6))

    def value(metric: str, **labels: str) -> float:
        return found[Series.of(metric, **labels)]

    assert value("messplus_alpha", **LEVEL) == 0.7
    assert value("messplus_queue", **LEVEL) == 1.5
    assert value("messplus_overall_satisfaction", **LEVEL) == 0.6
    assert value("messplus_cost_per_request", **LEVEL) == 0.01
    assert value("messplus_overall_saved_share", **LEVEL) == 0.75
    assert value("messplus_alert", kind="below", **LEVEL) == 1.0
    assert value("messplus_judge_kappa", zoo="llama", model="gpt-judge") > 0.0


def test_what_is_unknown_has_no_gauge() -> None:
    found = gauges(status(judged=0, rate=None, mean_alpha=None, priced=0, cost=0.0, compared=0))
    names = {series.metric for series in found}

    assert not names & {"messplus_satisfaction", "messplus_satisfaction_low", "messplus_cost"}
    assert not names & {"messplus_cost_per_request", "messplus_saved_share"}


def test_every_declared_gauge_is_there() -> None:
    assert {series.metric for series in gauges(status(rate=0.6))} == MEANINGS.keys()
