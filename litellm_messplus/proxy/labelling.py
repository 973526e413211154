"""Between the proxy and the label sources: calls as they see them, findings as labels."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.journal import Journal
from litellm_messplus.labels.checks.source import build_checks
from litellm_messplus.labels.implicit import Implicit
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.source import (
    AnsweredCall,
    Asked,
    Finding,
    LabelDesk,
    LabelSource,
    ReportFinding,
)
from litellm_messplus.proxy.surfaces.identity import session_named
from litellm_messplus.proxy.surfaces.request import IncomingRequest
from litellm_messplus.proxy.surfaces.surface import SURFACES
from litellm_messplus.records import CallRecord, LabelRecord, RequestRecord, new_id, served_call_id
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.vocabulary import CallRole, CallStatus


def judged_request(record: RequestRecord, request: IncomingRequest) -> Asked:
    """Describe a request to those who judge its answers. What they say of a further turn, they say
    of the conversation, for which its first request stands."""
    given = request.kwargs
    return Asked(
        request_id=record.counted_with or record.request_id,
        zoo=record.zoo,
        service_level=record.service_level,
        asked_at=record.created_at,
        key_hash=record.key_hash,
        user=_user(request),
        conversation=request.conversation,
        parameters={name: given[name] for name in request.surface.parameters if given.get(name)},
        metadata=request.client_metadata,
        label_probability=record.label_probability,
    )


def judged_call(
    asked: Asked, record: RequestRecord, call: CallRecord, response: Any
) -> AnsweredCall:
    """Describe a call of it that has ended; ``response`` is LiteLLM's answer, of any surface."""
    said = SURFACES[record.call_type].said
    is_turn = record.counted_with is not None and call.role is CallRole.SERVED
    return AnsweredCall(
        asked=asked,
        call_id=served_call_id(asked.request_id) if is_turn else call.call_id,
        candidate=call.candidate,
        is_served=call.role is CallRole.SERVED,
        calls=1 + record.exploration_calls,
        ended_at=call.ended_at,
        answer=said(response) if call.status is CallStatus.SUCCESS else None,
    )


class LabelWriter:
    """A writer of findings into the log. Nobody waits for them, so they are written with the next
    batch."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told: list[ReportFinding] = []

    def also(self, told: ReportFinding) -> None:
        """Tell somebody else of every finding too."""
        self._told.append(told)

    def report(self, finding: Finding) -> None:
        for told in self._told:
            told(finding)
        self._journal.write(
            LabelRecord(
                label_id=new_id(),
                call_id=finding.call_id,
                request_id=finding.request_id,
                created_at=datetime.now(UTC),
                kind=finding.kind,
                source=finding.source,
                value=finding.value,
                weight=finding.weight,
                comment=finding.comment,
                probability=finding.probability,
            )
        )


def _user(request: IncomingRequest) -> str | None:
    """Name whoever the client says is asking: a session, else an end user."""
    metadata: Mapping[str, Any] = request.client_metadata
    for found in (
        session_named(metadata, request.kwargs),
        request.kwargs.get("user"),
        metadata.get("user_id"),
    ):
        if found:
            return str(found)
    return None


# The label sources that are configured, of every zoo.


def build_label_desk(
    settings: MessplusSettings,
    report: ReportFinding,
    counters: Counters,
    judges: Mapping[str, Judge],
) -> LabelDesk:
    """Build one desk for the process; every zoo has sources of its own.

    Raises ConfigurationError for a source that cannot be made.
    """
    sources = {
        name: _sources(name, zoo, report, counters, judges.get(name))
        for name, zoo in settings.zoos.items()
    }
    return LabelDesk(sources, counters, settings.whole)


def _sources(
    name: str, zoo: ZooSettings, report: ReportFinding, counters: Counters, judge: Judge | None
) -> list[LabelSource]:
    checks = build_checks(zoo.labels.checks, name, report, counters)
    next_turn = zoo.labels.implicit
    implicit = None if next_turn is None else Implicit(next_turn, report)
    sources: list[LabelSource | None] = [checks, judge, implicit]
    return [source for source in sources if source is not None]
