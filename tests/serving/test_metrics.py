"""What Prometheus scrapes: written by its own library, and read by its own tool."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from litellm_messplus.brain import metrics as module
from litellm_messplus.brain.metrics import (
    DISTRIBUTIONS,
    MEANINGS,
    Distributions,
    exposition,
    readiness_gauges,
)
from litellm_messplus.brain.workers import DISTRIBUTED, MEASURED, Readiness, counters_of
from litellm_messplus.figures.figure import Series
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.status.figures import gauges
from tests.support.builders import (
    LARGE,
    SMALL,
    exploration_call,
    request,
    served_call,
)
from tests.support.markdown import ROOT, Document, code_of
from tests.support.packages import program
from tests.support.statuses import status

NAMED_AFTER_ITS_TYPE = "messplus_counter"
"""An older name, which dashboards read: the one that `promtool` finds fault with."""


def scraped(seen: Distributions | None = None, counts: Mapping[str, float] | None = None) -> str:
    of_workers = {"routing_failures": 2, f"{MEASURED}prompts": 3.0, **(counts or {})}
    told = (seen or Distributions()).counts()
    distributed = {f"{DISTRIBUTED}{name}": count for name, count in told.items()}
    found = gauges(status(rate=0.6)) | readiness_gauges(Readiness.ROUTING)
    return exposition(found, {**of_workers, **distributed})


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def of_one_day() -> Distributions:
    seen = Distributions()
    for number, seconds in enumerate((0.0004, 0.0008, 9.0)):
        name = f"r{number}"
        seen.saw(request(name, zoo="zoo", decision_seconds=seconds))
        seen.saw(served_call(name, cost=0.002))
        seen.saw(exploration_call(name, cost=0.2))
    return seen


def sample(text: str, name: str, **labels: str) -> float:
    (value,) = (
        each.value
        for family in families(text).values()
        for each in family.samples
        if each.name == name and each.labels == labels
    )
    return float(value)


def test_every_metric_says_what_it_is() -> None:
    found = families(scraped(of_one_day()))

    assert set(found) - {each.metric for each in DISTRIBUTIONS} <= set(MEANINGS)
    assert all(family.documentation for family in found.values())
    assert found["messplus_counter"].samples[0].value == 2.0
    assert found["messplus_encoder_prompts"].samples[0].value == 3.0


def test_buckets_count_what_is_at_most_their_bound() -> None:
    text = scraped(of_one_day())

    def decisions(bound: str) -> float:
        return sample(text, "messplus_decision_seconds_bucket", zoo="zoo", le=bound)

    bounds = ("0.0005", "0.001", "0.5", "+Inf")
    assert [decisions(bound) for bound in bounds] == [1.0, 2.0, 2.0, 3.0]
    assert sample(text, "messplus_decision_seconds_count", zoo="zoo") == 3.0
    assert sample(text, "messplus_decision_seconds_sum", zoo="zoo") == pytest.approx(9.0012)


def test_costs_are_by_model() -> None:
    text = scraped(of_one_day())

    for model, cost in ((LARGE, 0.006), (SMALL, 0.6)):
        found = sample(text, "messplus_call_cost_sum", zoo="zoo", model=model)
        assert found == pytest.approx(cost)


def test_an_answer_is_timed_by_its_model_and_neither_a_failure_nor_what_a_cache_repeats() -> None:
    seen = Distributions()
    for name in ("r1", "r2", "r3"):
        seen.saw(request(name))
    seen.saw(served_call("r1", candidate="large", seconds=3.0))
    seen.saw(served_call("r2", candidate="large", seconds=0.001, is_cache_hit=True))
    seen.saw(served_call("r3", candidate="large", seconds=60.0, status=CallStatus.FAILURE))
    text = scraped(seen)

    of = {"zoo": "zoo", "model": "large"}
    assert sample(text, "messplus_answer_seconds_sum", **of) == 3.0
    assert sample(text, "messplus_answer_seconds_bucket", le="5.0", **of) == 1.0


def test_what_is_unknown_is_in_no_bucket() -> None:
    seen = Distributions()
    seen.saw(request("r1"))
    seen.saw(served_call("r1", cost=None, seconds=None))
    seen.saw(served_call("forgotten", cost=1.0))

    assert {json.loads(name)[0] for name in seen.counts()} == {"messplus_decision_seconds"}


def test_the_buckets_of_several_workers_are_one_histogram() -> None:
    total = Counter(of_one_day().counts())
    total.update(of_one_day().counts())
    text = scraped(counts={f"{DISTRIBUTED}{name}": count for name, count in total.items()})

    assert sample(text, "messplus_decision_seconds_count", zoo="zoo") == 6.0
    assert counters_of({f"{DISTRIBUTED}any": 1.0}) == {}


def test_requests_are_remembered_up_to_a_bound() -> None:
    seen = Distributions(remembered=10)
    for number in range(100):
        seen.saw(request(f"r{number}"))

    assert len(seen._zoos) == 10
    assert module.REMEMBERED == 4096


def test_the_state_of_a_worker_is_two_gauges() -> None:
    told = {
        state: tuple(readiness_gauges(state).values())  # up, degraded
        for state in Readiness
    }
    assert told == {
        Readiness.ROUTING: (1.0, 0.0),
        Readiness.DEGRADED: (1.0, 1.0),
        Readiness.ABSENT: (0.0, 0.0),
    }


def test_names_of_an_operator_are_escaped() -> None:
    name = 'a "quoted"\n\\name'
    found = families(exposition({Series.of("messplus_requests", zoo=name): 1.0}, {}))

    assert found["messplus_requests"].samples[0].labels["zoo"] == name


def test_prometheus_itself_reads_the_scrape() -> None:
    checked = subprocess.run(
        [program("prometheus").with_name("promtool"), "check", "metrics"],
        input=scraped(of_one_day()),
        capture_output=True,
        text=True,
        check=False,
    )

    found = (checked.stdout + checked.stderr).splitlines()
    assert [line for line in found if not line.startswith(NAMED_AFTER_ITS_TYPE)] == []
    assert checked.returncode in (0, 3)  # 3: it reads all, and would have named something otherwise


def test_metrics_are_few_and_documented() -> None:
    page = Document(ROOT / "docs" / "metrics.md")
    documented = [code_of(row.cells["Metric"]) for row in page.rows]

    exported = {*MEANINGS, *(each.metric for each in DISTRIBUTIONS)}
    assert sorted(map(str, documented)) == sorted(exported)
    assert len(exported) <= 50


def test_labels_are_zoo_level_and_model() -> None:
    more = {"messplus_alert": "kind", "messplus_counter": "name"}
    for name, family in families(scraped(of_one_day())).items():
        for each in family.samples:
            assert {*each.labels} <= {"zoo", "level", "model", "le", more.get(name)}, name
