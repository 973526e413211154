"""Whether a request is held: it stays with the deployment that answered before, undecided.

In an open tool loop, and where the prompt holds what only one provider can read, cost has no say:
another model there loses what the first one thought, or is refused with an error. Elsewhere a
conversation stays where its prompt cache is warm, if reading it is cheaper than reading anew. Where
trouble shows, it goes up to a better model, once, and never with what that one cannot read.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Mode = Literal["never", "tool_loop", "warm"]
"""What an operator allows to hold a request."""


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
    what tells of trouble. ``deployment`` is the one that has the state which the request continues,
    where its id says so."""

    is_in_loop: bool = False
    is_portable: bool = True
    trouble: Trouble | None = None
    deployment: str | None = None


def hold_of(mode: Mode, signs: Signs, *, saves: bool) -> Hold | None:
    """Tell why the request is to stay where it was answered; None where it is to be decided.
    ``saves`` says that what is warm there makes this call cheaper."""
    if mode == "never":
        return None
    if not signs.is_portable:
        return Hold.STATE
    if signs.is_in_loop:
        return Hold.TOOL_LOOP
    return Hold.WARM if mode == "warm" and saves else None


def may_go_up(signs: Signs, trouble: Trouble | None, *, went_up: bool) -> bool:
    """Tell whether trouble may break the hold: once, and with nothing in the prompt that another
    model cannot read."""
    return trouble is not None and signs.is_portable and not went_up
