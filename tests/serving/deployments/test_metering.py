"""What an ended call used and cost, and where that is known from."""

from typing import Any

import litellm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CostSource
from litellm_messplus.serving.deployments.metering import Meter, ReportedCall, Served
from litellm_messplus.serving.deployments.prices import DeploymentPrice
from tests.support.builders import LARGE, SMALL, build_zoo, request

PRICES = {SMALL: Price(1.0, 1.0), LARGE: Price(2.0, 3.0)}
DEPLOYMENTS = {
    "dear": DeploymentPrice(Price(100.0, 0.0), 1.0),
    "free": DeploymentPrice(Price(0.0, 0.0), 1.0),
    "own": DeploymentPrice(Price(5.0, 0.0, request=2.0), None),
    "bought": DeploymentPrice(Price(100.0, 0.0, request=2.0), 10.0),
    "detailed": DeploymentPrice(Price(2.0, 3.0, cached_discount=1.0, second=7.0), 1.0),
}
USAGE = {"prompt_tokens": 10, "completion_tokens": 2}
MEASURED, COUNTED = CostSource.MEASURED, CostSource.COUNTED
ESTIMATED, UNKNOWN = CostSource.ESTIMATED, CostSource.UNKNOWN


def meter(counters: Counters | None = None, **zoo: Any) -> Meter:
    return Meter({"zoo": build_zoo(PRICES, **zoo)}, DEPLOYMENTS, counters or Counters())


def reading(
    usage: object = USAGE,
    dollars: float | None = None,
    answer: str = "",
    seconds: float | None = None,
) -> ReportedCall:
    return ReportedCall(usage, answer, dollars, seconds)


@pytest.mark.parametrize(
    ("candidate", "deployment", "usage", "dollars", "expected"),
    [
        (LARGE, "dear", USAGE, 0.7, (0.7, MEASURED)),
        (LARGE, "dear", USAGE, 0.0, (1000.0, MEASURED)),
        (LARGE, "dear", USAGE, None, (1000.0, MEASURED)),
        (LARGE, "free", USAGE, 0.0, (0.0, MEASURED)),
        (LARGE, "own", USAGE, 0.7, (52.0, MEASURED)),
        (LARGE, "bought", USAGE, 0.7, (9.0, MEASURED)),
        (LARGE, "bought", USAGE, 0.0, (1002.0, MEASURED)),
        (LARGE, "never seen", USAGE, None, (26.0, MEASURED)),  # 2 * 10 + 3 * 2
        (LARGE, None, USAGE, None, (26.0, MEASURED)),
        (LARGE, "dear", None, 0.7, (0.7, MEASURED)),
        (LARGE, "dear", None, 0.0, (5.0, ESTIMATED)),  # the record's estimate
        (None, None, USAGE, 0.7, (0.7, MEASURED)),
        (None, None, USAGE, None, (None, UNKNOWN)),
        (None, "outside", USAGE, 0.0, (None, UNKNOWN)),
        (None, None, None, 0.0, (None, UNKNOWN)),
        (None, "own", USAGE, 0.7, (0.7, MEASURED)),
        (None, "own", USAGE, None, (None, UNKNOWN)),
        ("outside", None, None, None, (None, UNKNOWN)),
    ],
    ids=[
        "LiteLLM's cost",
        "LiteLLM's zero of a deployment that costs something",
        "the deployment's price",
        "a zero that is one",
        "energy, of which LiteLLM's dollars say nothing",
        "LiteLLM's cost in the zoo's unit, and the price of a request",
        "the deployment's price in the zoo's unit",
        "the candidate's price",
        "the candidate's price without a deployment",
        "LiteLLM's cost without usage: it charges by the second, or its provider told it",
        "without usage LiteLLM's zero is no measurement",
        "a fallback outside the zoo that LiteLLM can price",
        "a fallback outside that nobody can price",
        "a zero of a fallback outside that nobody said is free",
        "a fallback outside without usage",
        "a fallback to another zoo, which counts in another unit",
        "a fallback to another zoo that LiteLLM cannot price",
        "an unknown candidate",
    ],
)
def test_a_cost_and_where_it_comes_from(
    candidate: str | None,
    deployment: str | None,
    usage: object,
    dollars: float | None,
    expected: tuple[float | None, CostSource],
) -> None:
    found = meter().read(request(), Served(candidate, deployment), reading(usage, dollars))
    assert (found.cost, found.source) == expected


def test_cached_tokens_and_seconds_have_their_own_price() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}
    found = meter().read(request(), Served(LARGE, "detailed"), reading(usage, seconds=0.5))
    assert found.cost == (6 * 2.0 + 4 * 1.0) + 2 * 3.0 + 0.5 * 7.0


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1e9))
def test_the_baseline_is_the_largests_price_of_the_used_tokens(
    prompt: int, completion: int, share: float, expected: float
) -> None:
    """Whatever was expected, and however much of it the served model found in its cache."""
    cached = int(share * prompt)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage |= {"prompt_tokens_details": {"cached_tokens": cached}}  # type: ignore[dict-item]
    asked = request(estimated_cost={SMALL: 1.0, LARGE: expected}, is_exploration=False)
    metered = meter().read(asked, Served(SMALL, None), reading(usage))
    assert metered.largest == 2.0 * prompt + 3.0 * completion


def test_litellms_dollars_are_not_taken_for_joules() -> None:
    found = meter(cost_unit="joule").read(request(), Served(LARGE, None), reading(dollars=0.7))
    assert (found.cost, found.source) == (26.0, MEASURED)


@pytest.mark.parametrize(
    ("electricity", "expected"),
    [(None, (None, UNKNOWN)), ({"price_per_kwh": 3.6}, (700_000.0, MEASURED))],
    ids=str,
)
def test_dollars_of_a_fallback_become_joules_only_at_a_stated_price(
    electricity: dict[str, float] | None, expected: tuple[float | None, CostSource]
) -> None:
    joules = meter(cost_unit="joule", electricity=electricity)
    found = joules.read(request(), Served(None, "outside"), reading(dollars=0.7))
    assert (found.cost, found.source) == (expected[0] and pytest.approx(expected[0]), expected[1])


def test_a_fallback_given_for_nothing_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM's router keeps each deployment's own price under its id."""
    free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    monkeypatch.setitem(litellm.model_cost, "outside", free)
    found = meter().read(request(), Served(None, "outside"), reading(dollars=0.0))
    assert (found.cost, found.source) == (0.0, MEASURED)


def test_an_endpoint_that_says_nothing_has_its_tokens_counted_and_marked() -> None:
    found = meter().read(request(), Served(LARGE, "never seen"), reading(None, 0.0, "one two"))
    assert found.usage == Usage(10, 2, is_counted=True)  # of 40 characters and of two words
    assert (found.cost, found.source) == (26.0, COUNTED)


def test_a_stream_of_an_endpoint_that_reports_no_usage_is_marked_as_counted() -> None:
    """LiteLLM counts it and does not say so; the endpoint's whole answers tell."""
    metering, served = meter(), Served(LARGE, "dear")
    stream = ReportedCall(USAGE, "hello", 0.7, None, is_stream=True)

    def source_of_a_stream() -> CostSource:
        return metering.read(request(), served, stream).source

    assert source_of_a_stream() is MEASURED  # nothing is known against it
    metering.read(request(), served, reading(usage=None, answer="hello"))
    assert source_of_a_stream() is COUNTED
    assert metering.read(request(), Served(SMALL, "free"), stream).source is MEASURED
    metering.read(request(), served, reading())
    assert source_of_a_stream() is MEASURED


@pytest.mark.parametrize("absurd", [-5, 10**12])
def test_absurd_usage_is_dropped_and_counted_with_its_cost(absurd: int) -> None:
    counters = Counters()
    usage = {"prompt_tokens": 10, "completion_tokens": absurd}
    found = meter(counters).read(request(), Served(LARGE, None), reading(usage, 0.7, "one two"))
    assert found.usage == Usage(10, 2, is_counted=True)
    assert (found.cost, found.source) == (26.0, COUNTED)
    assert counters.as_dict() == {"absurd_usages": 1}


@pytest.mark.parametrize("absurd", [-0.1, float("nan"), float("inf")])
def test_an_absurd_cost_is_dropped_and_counted(absurd: float) -> None:
    counters = Counters()
    found = meter(counters).read(request(), Served(LARGE, None), reading(dollars=absurd))
    assert (found.cost, found.source) == (26.0, MEASURED)
    assert counters.as_dict() == {"absurd_costs": 1}
