"""The gauges: named as documented, and never a number for what is unknown."""

import re

from litellm_messplus.status.gauges import gauges
from tests.support.markdown import ROOT, Document, code_of
from tests.support.statuses import status

PAGE = Document(ROOT / "docs" / "status.md")
LABELS = 'zoo="llama",service_level="default"'


def test_the_figures_are_there() -> None:
    found = gauges(status(rate=0.6))

    assert found[f"messplus_alpha{{{LABELS}}}"] == 0.7
    assert found[f"messplus_queue{{{LABELS}}}"] == 1.5
    assert found[f'messplus_satisfaction{{{LABELS},window="all"}}'] == 0.6
    assert found[f'messplus_cost_per_request{{{LABELS},window="last"}}'] == 0.01
    assert found[f'messplus_saved_share_largest{{{LABELS},window="all"}}'] == 0.75
    assert found[f'messplus_alert{{kind="not_kept",{LABELS}}}'] == 1.0
    assert found["messplus_alerts"] == 1.0
    source = f'{LABELS},window="all",source="judge"'
    assert found[f"messplus_source_satisfaction{{{source}}}"] == 0.8
    assert found[f"messplus_source_counting{{{source}}}"] == 400.0
    assert found[f'messplus_labelled_share{{{LABELS},window="last"}}'] == 0.9
    assert found['messplus_judge_cost{zoo="llama",judge="gpt-judge"}'] == 1.25
    assert found[f'messplus_predicting_seconds{{{LABELS},window="all"}}'] == 0.002
    assert found[f'messplus_predicting_joules{{{LABELS},window="all"}}'] == 0.25
    assert found[f"messplus_response_bias{{{LABELS}}}"] > 1.0


def test_what_is_unknown_has_no_gauge() -> None:
    found = gauges(status(answered=0, rate=None, mean_alpha=None, priced=0, cost=0.0, compared=0))
    names = {name.partition("{")[0] for name in found}

    assert not names & {"messplus_satisfaction", "messplus_satisfaction_low", "messplus_cost"}
    assert not names & {"messplus_cost_per_request", "messplus_saved_share_largest"}


def test_every_gauge_is_documented_and_no_other() -> None:
    documented = {
        code_of(row.cells[column])
        for row in PAGE.under("Metrics")
        for column in ("Gauge", "Gauge by window")
        if column in row.cells
    }

    assert {name.partition("{")[0] for name in gauges(status(rate=0.6))} == documented


def test_names_are_as_prometheus_writes_them() -> None:
    pattern = re.compile(r'[a-z_]+(\{([a-z_]+="[^"]*",?)+\})?')

    assert all(pattern.fullmatch(name) for name in gauges(status(rate=0.6)))
