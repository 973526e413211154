"""From LiteLLM's log events to the record of the served call."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.proxy import answers
from litellm_messplus.proxy.open_requests import OpenRequest
from litellm_messplus.records import (
    CallRecord,
    CallRole,
    CallStatus,
    CostSource,
    served_call_id,
)

Candidates = Mapping[str, str]
"""Candidate by deployment id."""


def succeeded(
    opened: OpenRequest,
    payload: Mapping[str, Any],
    response: object,
    candidates: Candidates,
    pricing: answers.Pricing,
    *,
    store_text: bool,
) -> CallRecord:
    """The served call, attributed to the deployment that served it in the end.

    ``payload`` is LiteLLM's standard logging object; it comes once, after retries and fallbacks.
    """
    deployment = payload.get("model_id")
    candidate = candidates.get(deployment or "")
    is_cache_hit = bool(payload.get("cache_hit"))
    usage = answers.usage_of(payload.get("prompt_tokens"), payload.get("completion_tokens"))
    cost, source = (
        (0.0, CostSource.MEASURED)
        if is_cache_hit
        else pricing.cost(opened.record, candidate, deployment, usage, payload.get("response_cost"))
    )
    return CallRecord(
        call_id=served_call_id(opened.record.request_id),
        request_id=opened.record.request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.SERVED,
        status=CallStatus.SUCCESS,
        candidate=candidate,
        deployment_id=deployment,
        model=payload.get("model"),
        response_id=opened.response_id or payload.get("id"),
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        cost=cost,
        cost_source=source,
        seconds=payload.get("response_time"),
        is_cache_hit=is_cache_hit,
        answer=answers.text(response) if store_text else None,
    )


def failed(opened: OpenRequest, error: BaseException) -> CallRecord:
    """The request ended without an answer, after every retry and fallback."""
    return CallRecord(
        call_id=served_call_id(opened.record.request_id),
        request_id=opened.record.request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.SERVED,
        status=CallStatus.FAILURE,
        candidate=opened.record.chosen,
        error=f"{type(error).__name__}: {error}"[:2000],
    )
