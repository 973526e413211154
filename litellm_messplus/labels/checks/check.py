"""The protocol of a check, and what it says."""

from dataclasses import dataclass
from typing import Protocol

from litellm_messplus.labels.answered_call import AnsweredCall


@dataclass(frozen=True, slots=True)
class Score:
    """Satisfaction from 0 to 1, and why. The log keeps the reason and may not keep anybody's words,
    so it quotes nothing."""

    value: float
    reason: str | None = None


class CheckTimeoutError(Exception):
    """A check took longer than it may."""


class Check(Protocol):
    """Looks at one call at a time; ``name`` is what the log keeps."""

    name: str

    async def check(self, call: AnsweredCall) -> Score | None:
        """None where it cannot say. Whatever it raises is counted, and gives no label."""
        ...
