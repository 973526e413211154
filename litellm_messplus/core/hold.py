"""The rule on whether a request is held: kept at the deployment that answered before, undecided.

In an open tool loop, or if the prompt holds content that only one provider can read, cost plays no
role: another model would lose the first one's reasoning, or be refused with an error. Otherwise a
conversation stays where its prompt cache is warm, if reading it is cheaper than reading anew. On
trouble it moves up to a better model, once, and never with content which that one cannot read.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from litellm_messplus.rows import column, public, record

Mode = Literal["never", "tool_loop", "warm"]
"""The reasons for which an operator allows a request to be held."""


class Hold(StrEnum):
    """The reasons for which a request is held; the last three, for which it is no longer."""

    TOOL_LOOP = "tool_loop"
    STATE = "state"
    WARM = "warm"
    TROUBLE = "trouble"
    LOST = "lost"
    UNKNOWN = "unknown"


KEPT = frozenset({Hold.TOOL_LOOP, Hold.STATE, Hold.WARM})


class Trouble(StrEnum):
    """The signs in a prompt that the model gets no further."""

    REPEATED = "it repeats a tool call"
    FAILED = "its tool calls fail"
    ASKED_AGAIN = "the same was asked again"
    REGENERATED = "an answer was drawn anew"


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of a prompt: whether a tool loop is open, whether every model could read it, and
    any sign of trouble. ``deployment`` is the one that holds the state which the request continues,
    if its id names one."""

    is_in_loop: bool = False
    is_portable: bool = True
    trouble: Trouble | None = None
    deployment: str | None = None


def hold_of(mode: Mode, signs: Signs, *, saves: bool) -> Hold | None:
    """Return why the request is to stay where it was answered; None if it is to be decided.
    ``saves`` states that the warm cache there makes this call cheaper."""
    if mode == "never":
        return None
    if not signs.is_portable:
        return Hold.STATE
    if signs.is_in_loop:
        return Hold.TOOL_LOOP
    return Hold.WARM if mode == "warm" and saves else None


def may_go_up(signs: Signs, trouble: Trouble | None, *, went_up: bool) -> bool:
    """Tell whether trouble may break the hold: once, and only if another model can read the whole
    prompt."""
    return trouble is not None and signs.is_portable and not went_up


# What the log keeps of a request's conversation.


@record
class LinePlace:
    """The place of a request in its line, where conversations are held."""

    conversation: str = public(
        "The id of the request that began its conversation; NULL if none are held.", size=64
    )
    line: str = public("The id of the request that began its line: one prompt that grows.", size=64)
    prefix: str = column(
        "Keyed digest of its whole prompt, the prefix of the prompts that continue it.",
        size=32,
    )
    turn: int = public("Its number in the line, from 1.")
    hold: Hold | None = public(
        "Why it was held, or no longer held; NULL if it was decided.",
        size=16,
        default=None,
    )
    session: str | None = column(
        "Keyed digest of the session that the client named; NULL if it named none.",
        size=32,
        default=None,
    )
