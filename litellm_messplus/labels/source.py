"""The protocol of a label source, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.answered_call import AnsweredCall


@dataclass(frozen=True, slots=True)
class Finding:
    """What a source says of a call: satisfaction from 0 to 1, and why, for people."""

    call_id: str
    request_id: str
    kind: LabelKind
    source: str
    value: float
    weight: float
    comment: str | None = None


Report = Callable[[Finding], None]
"""Where a source hands over what it found, now or later: the log takes it from there."""


class LabelSource(Protocol):
    """Watches the calls of one zoo, and labels those of which it can say something.

    It was given its `Report` when it was made. ``ended`` returns at once, and whatever it raises is
    counted and changes nothing else; what takes longer is a task of the source's own.
    """

    name: str

    def ended(self, call: AnsweredCall) -> None:
        """A call has ended: the one that the user saw, or an exploration."""
        ...

    async def close(self) -> None:
        """The proxy stops: report what can be said within moments, and leave the rest."""
        ...
