"""The protocol of a label source, and the data that it reads and reports."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.records import LabelRecord, new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import LabelKind

# A call that has ended, as a label source sees it: the request and the answer.


class Finish(StrEnum):
    """The reasons why an answer ended, on any surface."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in an answer; ``arguments`` should be JSON, but may be malformed."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the model: its first choice. ``others`` are the types of parts that are neither
    text nor a tool call, such as an image."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.OTHER
    refusal: str | None = None
    others: tuple[str, ...] = ()


class Cause(NamedTuple):
    """The key whose client determines a label's value, and the promise that it counts towards."""

    zoo: str
    service_level: str
    key_hash: str | None


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """A request. ``parameters`` are those of its surface that constrain the answer, ``metadata`` is
    the client's. ``is_limited`` if the client limits
    the length of the answer. ``label_probability`` is that of the draw that bought labels of its
    answers; None if none are bought. ``also`` is the number of calls beyond those decided."""

    request_id: str
    zoo: str
    service_level: str
    key_hash: str | None
    conversation: Conversation
    parameters: Mapping[str, Any]
    metadata: Mapping[str, Any]
    label_probability: float | None = None
    is_limited: bool = False
    also: int = 0

    @property
    def cause(self) -> Cause:
        """The key of the request, and its promise."""
        return Cause(self.zoo, self.service_level, self.key_hash)


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """An ended call of a request. If it failed, ``answer`` is None.

    ``calls`` is the number of calls of the request, including this one; ``is_served`` if the user
    saw this one.
    """

    request: JudgedRequest
    call_id: str
    candidate: str | None
    is_served: bool
    calls: int
    ended_at: datetime
    answer: Answer | None

    @property
    def is_cut_by_client(self) -> bool:
        """Whether the answer was cut at a length limit of the client."""
        cut = self.answer is not None and self.answer.finish is Finish.LENGTH
        return cut and self.request.is_limited


@dataclass(frozen=True, slots=True)
class Finding:
    """A source's verdict on a call: satisfaction from 0 to 1, and a readable reason.
    ``probability`` is that of the draw that bought it. ``cause`` is None if no client determines
    its value."""

    call_id: str
    request_id: str
    kind: LabelKind
    source: str
    value: float
    weight: float
    comment: str | None = None
    probability: float | None = None
    cause: Cause | None = None

    def label(self) -> LabelRecord:
        """Make the label that is logged, created now."""
        return LabelRecord(
            label_id=new_id(),
            call_id=self.call_id,
            request_id=self.request_id,
            created_at=datetime.now(UTC),
            kind=self.kind,
            source=self.source,
            value=self.value,
            weight=self.weight,
            comment=self.comment,
            probability=self.probability,
        )


ReportFinding = Callable[[Finding], None]
"""Callback through which a source reports a finding, now or later, to be logged."""


class LabelSource(Protocol):
    """A source of labels: it sees the calls of one zoo, and labels those that it can judge.

    It gets its `ReportFinding` when it is created. ``ended`` returns at once, and an exception of
    it is only counted; longer work is a task of the source's own.
    """

    name: str

    def ended(self, call: AnsweredCall) -> None:
        """Handle a call that has ended: the one that the user saw, or an exploration."""

    async def close(self) -> None:
        """Report the findings that are nearly done, as the proxy stops, and drop the rest."""


# The label desk: passes each ended call to the sources of its zoo, even if one of them fails.


class LabelDesk:
    """The label sources by zoo; a zoo without any costs nothing."""

    def __init__(self, sources: Mapping[str, Sequence[LabelSource]], counters: Counters) -> None:
        self._sources = {zoo: tuple(found) for zoo, found in sources.items() if found}
        self._counters = counters

    def is_watched(self, zoo: str) -> bool:
        """Tell whether the requests of a zoo are kept until their calls end."""
        return zoo in self._sources

    def ended(self, call: AnsweredCall) -> None:
        """Pass a call to every source; returns at once."""
        for source in self._sources.get(call.request.zoo, ()):
            try:
                source.ended(call)
            except Exception:
                self._failed(source)

    async def close(self) -> None:
        """Let every source finish."""
        every = [source for sources in self._sources.values() for source in sources]
        ended = await asyncio.gather(*(source.close() for source in every), return_exceptions=True)
        for source, result in zip(every, ended, strict=True):
            if isinstance(result, BaseException):
                self._failed(source, result)

    def _failed(self, source: LabelSource, error: BaseException | None = None) -> None:
        reason = f": {error!r}" if error else ""
        self._counters.failure("label_failures", f"label source {source.name} failed{reason}")
