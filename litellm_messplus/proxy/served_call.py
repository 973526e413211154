"""From LiteLLM's log events to the record of the served call."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.proxy.deployments.metering import Meter, ReportedCall, Served
from litellm_messplus.proxy.litellm_seam import NO_DEPLOYMENT_LEFT
from litellm_messplus.proxy.open_requests import Author, OpenRequest
from litellm_messplus.proxy.surfaces import answers
from litellm_messplus.proxy.surfaces.answers import plain_response_id
from litellm_messplus.records import (
    CallRecord,
    CallRole,
    CallStatus,
    CostSource,
    served_call_id,
)
from litellm_messplus.store.history import EndedCall, ended_calls

# Calls that other workers on the same database have served, read from the log.


class OtherWorkers:
    """The calls of other workers, from ``position`` in the log on: those that `exclude` was not
    told of before they were in the log. Other workers' are the calls that `exclude` was not told of
    before they were in the log."""

    def __init__(self, database: AsyncEngine, position: int) -> None:
        self._database = database
        self._position = position
        self._own: set[str] = set()

    def begin_at(self, position: int) -> None:
        """Begin at a position: calls up to there are no news."""
        self._position = position

    def exclude(self, call_id: str) -> None:
        """Exclude a call that this worker made."""
        self._own.add(call_id)

    async def ended_calls(self) -> list[EndedCall]:
        """Return those that have ended since the last time. Raises SQLAlchemyError where the log
        does not answer."""
        logged = await ended_calls(self._database, self._position)
        if logged:
            self._position = logged[-1].position
        others = [each.call for each in logged if each.call_id not in self._own]
        self._own.difference_update(each.call_id for each in logged)
        return others


Candidates = Mapping[str, str]
"""Of the request's zoo, by deployment id."""


def author_of_hit(payload: Mapping[str, Any], candidates: Candidates) -> Author:
    """Name the author of an answer that LiteLLM's cache did not give: the deployment that served it
    in the end."""
    deployment = payload.get("model_id")
    return Author(candidates.get(deployment or ""), deployment, payload.get("model"))


def succeeded(
    opened: OpenRequest,
    payload: Mapping[str, Any],
    response: object,
    author: Author,
    meter: Meter,
) -> CallRecord:
    """Record the served call, attributed to who wrote the answer.

    ``payload`` is LiteLLM's standard logging object; it comes once, after retries and fallbacks.
    """
    is_cache_hit = bool(payload.get("cache_hit"))
    answer = answers.text(response)
    seconds = _seconds(payload)
    metered = meter.read(
        opened.record,
        Served(author.candidate, author.deployment_id),
        ReportedCall(
            _usage(payload),
            answer,
            payload.get("response_cost"),
            seconds,
            is_stream=opened.record.is_stream,
        ),
    )
    usage = metered.usage
    return CallRecord(
        call_id=served_call_id(opened.record.request_id),
        request_id=opened.record.request_id,
        ended_at=_ended_at(payload),
        role=CallRole.SERVED,
        status=CallStatus.SUCCESS,
        candidate=author.candidate,
        deployment_id=author.deployment_id,
        model=author.model,
        response_id=opened.response_id or _response_id(payload, response),
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        reasoning_tokens=usage.reasoning_tokens if usage else None,
        cost=0.0 if is_cache_hit else metered.cost,
        cost_source=CostSource.MEASURED if is_cache_hit else metered.source,
        seconds=seconds,
        is_cache_hit=is_cache_hit,
        answer=answer,
    )


def _response_id(payload: Mapping[str, Any], response: object) -> str | None:
    """Return the id that the client got: of a repeated answer, the payload has it with an ending of
    its own."""
    told = answers.response_id(response) if payload.get("cache_hit") else payload.get("id")
    return None if told is None else plain_response_id(told)


def _usage(payload: Mapping[str, Any]) -> object:
    """Find the usage, with the details where LiteLLM kept them; the bare numbers are in the payload
    itself."""
    return (payload.get("metadata") or {}).get("usage_object") or payload


def _seconds(payload: Mapping[str, Any]) -> float | None:
    """Measure the time to the end of the answer; LiteLLM's own `response_time` of a stream ends
    with its start."""
    started, ended = payload.get("startTime"), payload.get("endTime")
    return None if started is None or ended is None else ended - started


def _ended_at(payload: Mapping[str, Any]) -> datetime:
    """Return when the answer ended: LiteLLM's event comes some time after."""
    ended = payload.get("endTime")
    return datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)


def failed(opened: OpenRequest, error: BaseException) -> CallRecord:
    """Record a request that ended without an answer, after every retry and fallback.

    Of one that LiteLLM refused, since it has no deployment left, no candidate was called.
    """
    is_refused = isinstance(error, NO_DEPLOYMENT_LEFT) and not opened.tried
    return CallRecord(
        call_id=served_call_id(opened.record.request_id),
        request_id=opened.record.request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.SERVED,
        status=CallStatus.FAILURE,
        candidate=None if is_refused else opened.record.chosen,
        error=f"{type(error).__name__}: {error}"[:2000],
    )
