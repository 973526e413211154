"""A call that has ended, as a label source sees it: what was asked, and what was answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from litellm_messplus.prediction.conversation import Conversation


class Finish(StrEnum):
    """Why an answer ended, whatever the surface calls it."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that an answer asks for; ``arguments`` is JSON, or was meant to be."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said: of the first choice, where there are several. ``others`` are the types
    of what is neither words nor a tool call, such as an image."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.OTHER
    refusal: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. ``parameters`` are those of its surface that say what an answer must be like,
    ``metadata`` is the client's; ``user`` is whoever the client says is asking."""

    request_id: str
    zoo: str
    service_level: str
    asked_at: datetime
    key_hash: str | None
    user: str | None
    conversation: Conversation
    parameters: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """One call of a request, ended. ``answer`` is None where it failed.

    ``calls`` is how many were made for the request, this one among them; ``is_served`` says that
    the user saw this one.
    """

    asked: Asked
    call_id: str
    candidate: str | None
    is_served: bool
    calls: int
    ended_at: datetime
    answer: Answer | None
