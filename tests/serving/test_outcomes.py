"""From LiteLLM's log event to the record of the served call."""

from datetime import UTC, datetime
from typing import Any

import pytest
from litellm.types.router import RouterRateLimitError

from litellm_messplus.brain.messages import UNKNOWN, Author, Order
from litellm_messplus.costs.price import Price
from litellm_messplus.records import CallRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CallStatus, CostSource
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.metering import Meter
from litellm_messplus.serving.deployments.prices import DeploymentPrice
from litellm_messplus.serving.ends import call_record
from litellm_messplus.serving.open_requests import OpenRequest, Report
from litellm_messplus.serving.served import answered_end, failed_end, served_by
from tests.support.builders import LARGE, SMALL, build_zoo, request

PRICE = Price(2.0, 3.0, cached_discount=1.0)
ANSWER = {"choices": [{"message": {"content": "one two"}}]}


def record(response: object = ANSWER, author: Author | None = None, **payload: Any) -> CallRecord:
    """Of a served call; LiteLLM's payload has what is given."""
    meter = Meter({"zoo": build_zoo()}, {"d": DeploymentPrice(PRICE, 1.0)}, Counters())
    told = {"model_id": "d", "model": "m", "startTime": 100.0, "endTime": 102.5, **payload}
    opened = OpenRequest(Order(request()))
    index = DeploymentIndex()
    index.candidates_of["zoo"]["d"] = LARGE
    report = Report({"standard_logging_object": told}, response)
    end = answered_end(opened, report, author or served_by(report, "zoo", index))
    return call_record(opened.record, end, meter)


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
def test_usages_details_count_where_they_were_kept(payload: dict[str, Any], cost: float) -> None:
    found = record(**payload, response_cost=0.0)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 2)
    assert (found.cached_tokens, found.reasoning_tokens) == (26.0 - cost, 0)
    assert (found.cost, found.cost_source) == (cost, CostSource.MEASURED)


def test_what_the_endpoint_wrote_to_its_cache_is_logged() -> None:
    details = {"cached_tokens": 4, "cache_creation_tokens": 3}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": details}
    found = record(prompt_tokens=10, completion_tokens=2, metadata={"usage_object": usage})
    assert (found.cached_tokens, found.written_tokens) == (4, 3)


def test_what_litellms_cache_answered_costs_nothing() -> None:
    found = record(prompt_tokens=10, completion_tokens=2, response_cost=0.7, cache_hit=True)
    assert (found.cost, found.cost_source) == (0.0, CostSource.MEASURED)
    assert found.is_cache_hit


def test_a_new_answer_is_of_who_served_and_a_repeated_one_of_who_wrote_it() -> None:
    def who(found: CallRecord) -> tuple[str | None, str | None, str | None]:
        return found.candidate, found.deployment_id, found.model

    repeated = {**ANSWER, "id": "chatcmpl-1"}
    assert who(record()) == (LARGE, "d", "m")
    assert who(record(model_id="elsewhere")) == (None, "elsewhere", "m")
    written = Author(SMALL, "e", "n")
    found = record(repeated, written, cache_hit=True, id="chatcmpl-1_cache_hit17.5")
    assert (who(found), found.response_id) == ((SMALL, "e", "n"), "chatcmpl-1")
    assert who(record(repeated, UNKNOWN, cache_hit=True)) == (None, None, None)


@pytest.mark.parametrize(
    ("tried", "candidate"), [((), None), (("d",), LARGE)], ids=["refused", "retried"]
)
def test_of_a_request_that_litellm_refused_no_candidate_was_called(
    tried: tuple[str, ...], candidate: str | None
) -> None:
    opened = OpenRequest(Order(request()), tried=set(tried))
    refusal = RouterRateLimitError("zoo", 5.0, enable_pre_call_checks=False, cooldown_list=[])
    meter = Meter({"zoo": build_zoo()}, {}, Counters())
    found = call_record(opened.record, failed_end(opened, refusal, DeploymentIndex(), {}), meter)
    assert (found.candidate, found.status) == (candidate, CallStatus.FAILURE)
    assert (found.answer, found.cost) == (None, None)
    assert found.error is not None
    assert found.error.startswith("RouterRateLimitError: ")
    assert failed_end(opened, ValueError("no"), DeploymentIndex(), {}).author.candidate == LARGE


def test_a_call_without_usage_is_counted_and_marked() -> None:
    found = record(prompt_tokens=0, completion_tokens=0, response_cost=0.0)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 2)
    assert found.cost_source is CostSource.COUNTED


def test_an_answer_without_usage_or_words_costs_its_estimate() -> None:
    found = record({"choices": []}, prompt_tokens=0, completion_tokens=0)
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)
    assert (found.cost, found.cost_source) == (5.0, CostSource.ESTIMATED)
