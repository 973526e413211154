"""What the brain answers: what the hands do with a request, and remember until it ends."""

from dataclasses import dataclass
from typing import NamedTuple

from litellm_messplus.brain.asked import OPEN, Admission
from litellm_messplus.brain.holds import Pin
from litellm_messplus.conversations.line import Place
from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Choice, Question, Reading
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.records import RequestRecord


class Awaited(NamedTuple):
    """A decided request whose answer is read to keep or replace it."""

    engine: Engine
    question: Question
    choice: Choice

    def read(self, looks: AnswerSurface) -> Reading:
        """Read the answer of the chosen candidate, and decide whether another one is called."""
        return self.engine.reads(self.question, self.choice, looks)


@dataclass(frozen=True, slots=True)
class Order:
    """What the hands do with a request, and remember until it ends."""

    record: RequestRecord
    ranking: tuple[str, ...] = ()
    """The candidates in the order in which to try them."""
    explored: tuple[str, ...] = ()
    """The candidates that are called in addition, unseen."""
    admission: Admission = OPEN
    place: Place | None = None
    """Its place in a conversation; None if those are not held."""
    pin: Pin | None = None
    """What holds it."""
    judged: JudgedRequest | None = None
    """The request as the label sources see it, if one judges its answers."""
    awaited: Awaited | None = None
    """Set if its answer may be replaced."""
