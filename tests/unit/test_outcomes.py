"""From LiteLLM's log event to the record of the served call."""

from datetime import UTC, datetime
from typing import Any

import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.counters import Counters
from litellm_messplus.proxy import outcomes
from litellm_messplus.proxy.metering import Meter
from litellm_messplus.proxy.open_requests import OpenRequest
from litellm_messplus.proxy.prices import DeploymentPrice
from litellm_messplus.records import CallRecord, CostSource
from tests.unit.builders import LARGE, build_zoo, request

PRICE = Price(2.0, 3.0, cached_discount=1.0)
ANSWER = {"choices": [{"message": {"content": "one two"}}]}


def record(response: object = ANSWER, **payload: Any) -> CallRecord:
    """Of a served call; LiteLLM's payload has what is given."""
    meter = Meter({"zoo": build_zoo()}, {"d": DeploymentPrice(PRICE, 1.0)}, Counters())
    told = {"model_id": "d", "startTime": 100.0, "endTime": 102.5, **payload}
    opened = OpenRequest(request(), (LARGE,))
    return outcomes.succeeded(opened, told, response, {"d": LARGE}, meter, store_text=False)


def test_a_call_lasts_to_the_end_of_its_answer() -> None:
    """LiteLLM's `response_time` of a stream ends with the first token."""
    assert record(response_time=0.3).seconds == 2.5


def test_a_call_ended_when_its_answer_did_and_not_when_litellm_told() -> None:
    assert record().ended_at == datetime.fromtimestamp(102.5, UTC)


def test_seconds_that_nobody_knows_are_none() -> None:
    assert record(endTime=None).seconds is None


@pytest.mark.parametrize(
    ("payload", "cost"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, 26.0),
        ({"prompt_tokens": 10, "completion_tokens": 2, "metadata": {"usage_object": None}}, 26.0),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "metadata": {
                    "usage_object": {
                        "prompt_tokens": 10,
                        "completion_tokens": 2,
                        "prompt_tokens_details": {"cached_tokens": 4},
                    }
                },
            },
            22.0,
        ),
    ],
    ids=["bare", "without details", "with details"],
)
def test_the_details_of_usage_count_where_litellm_kept_them(
    payload: dict[str, Any], cost: float
) -> None:
    found = record(**payload, response_cost=0.0)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 2)
    assert (found.cached_tokens, found.reasoning_tokens) == (26.0 - cost, 0)
    assert (found.cost, found.cost_source) == (cost, CostSource.MEASURED)


def test_what_litellms_cache_answered_costs_nothing() -> None:
    found = record(prompt_tokens=10, completion_tokens=2, response_cost=0.7, cache_hit=True)
    assert (found.cost, found.cost_source) == (0.0, CostSource.MEASURED)
    assert found.is_cache_hit


def test_a_call_without_usage_is_counted_and_marked() -> None:
    found = record(prompt_tokens=0, completion_tokens=0, response_cost=0.0)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 2)
    assert found.cost_source is CostSource.COUNTED


def test_an_answer_without_usage_or_words_costs_its_estimate() -> None:
    found = record({"choices": []}, prompt_tokens=0, completion_tokens=0)
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)
    assert (found.cost, found.cost_source) == (5.0, CostSource.ESTIMATED)
