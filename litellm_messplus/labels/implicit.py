"""Labels from the user's next request: a question asked again means an unsatisfactory answer.

A weak label. The same question again (nearly the same words, or a regenerated answer) labels the
earlier answer unsatisfactory. Continuing the same conversation labels it satisfactory: labels that
are always bad would drive every rate down."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from litellm_messplus.labels.source import (
    AnsweredCall,
    Cause,
    Finding,
    JudgedRequest,
    ReportFinding,
)
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.labels import ImplicitSettings

# Likeness of two texts, to detect a question asked again.

TRIGRAM = 3
LONGEST = 4000
"""Most characters that are compared; questions that agree up to there count as the same."""


def likeness(one: str, other: str) -> float:
    """Compute the share of character trigrams that two texts have in common (Dice), from 0 to 1,
    ignoring case and spacing."""
    mine, theirs = _trigrams(one), _trigrams(other)
    return 2 * len(mine & theirs) / (len(mine) + len(theirs))


def _trigrams(text: str) -> set[str]:
    words = " ".join(text[:LONGEST].casefold().split())
    padded = f"  {words}  "  # so that even an empty text has trigrams
    return {padded[start : start + TRIGRAM] for start in range(len(padded) - TRIGRAM + 1)}


WEIGHT = 0.3
"""Weight of such a label: users ask again for many reasons."""
REMEMBERED = 10_000
"""Newest conversations whose last answer is remembered."""

ASKED_AGAIN, WENT_ON = "asked again", "went on"


@dataclass(frozen=True, slots=True)
class _Dialogue:
    """A conversation up to a question, as a hash of each turn; system messages, which may hold the
    time of day, are left out."""

    turns: tuple[int, ...]
    roles: tuple[str, ...]
    question: str

    @property
    def has_answers(self) -> bool:
        return "assistant" in self.roles


@dataclass(frozen=True, slots=True)
class _Answered:
    """The last answer in a conversation."""

    dialogue: _Dialogue
    call_id: str
    request_id: str
    ended_at: datetime
    cause: Cause


class Implicit:
    """The label source that reads the user's next request, one per zoo. A conversation is
    identified by the user that the client names; else by the key and its opening, and then both
    requests must share an answer, as many users may ask the same first question."""

    name = LabelKind.IMPLICIT.value

    def __init__(self, settings: ImplicitSettings, report: ReportFinding) -> None:
        self._settings = settings
        self._report = report
        self._last: Bounded[tuple[object, ...], _Answered] = Bounded(REMEMBERED)

    def ended(self, call: AnsweredCall) -> None:
        """Judge the answer before this one, and remember this one. An error is ignored: it is asked
        again because it failed."""
        if not call.is_served or call.answer is None:
            return
        dialogue = _dialogue(call.request)
        if not dialogue.turns:
            return
        key = _key(call.request, dialogue)
        earlier = self._last.pop(key, None)
        if earlier is not None:
            self._judge(earlier, call.request, dialogue)
        self._last[key] = _Answered(
            dialogue, call.call_id, call.request.request_id, call.ended_at, call.request.cause
        )

    async def close(self) -> None:
        """Do nothing: no work is under way."""

    def _judge(self, earlier: _Answered, request: JudgedRequest, dialogue: _Dialogue) -> None:
        since = request.received_at - earlier.ended_at
        if not timedelta(0) <= since <= timedelta(seconds=self._settings.within_seconds):
            return
        reaction = self._reaction(earlier.dialogue, dialogue, is_known=request.user is not None)
        if reaction is None:
            return
        self._report(
            Finding(
                call_id=earlier.call_id,
                request_id=earlier.request_id,
                kind=LabelKind.IMPLICIT,
                source=self.name,
                value=float(reaction == WENT_ON),
                weight=WEIGHT,
                comment=reaction,
                cause=earlier.cause,
            )
        )

    def _reaction(self, earlier: _Dialogue, now: _Dialogue, *, is_known: bool) -> str | None:
        """Name the reaction; None if the two are not of one conversation, or the last turn is no
        user's."""
        if now.roles[-1] != "user":
            return None
        is_again = likeness(earlier.question, now.question) >= self._settings.similarity
        before = len(earlier.turns)
        if now.turns[:before] == earlier.turns and now.roles[before : before + 1] == ("assistant",):
            return ASKED_AGAIN if is_again else WENT_ON
        repeats = len(now.turns) == before and now.turns[:-1] == earlier.turns[:-1]
        if repeats and is_again and (is_known or now.has_answers):
            return ASKED_AGAIN
        return None


def _dialogue(request: JudgedRequest) -> _Dialogue:
    turns = [
        turn for turn in request.conversation.turns if turn.role not in ("system", "developer")
    ]
    questions = [turn.text for turn in turns if turn.role == "user"]
    return _Dialogue(
        turns=tuple(hash((turn.role, turn.text)) for turn in turns),
        roles=tuple(turn.role for turn in turns),
        question=questions[-1] if questions else "",
    )


def _key(request: JudgedRequest, dialogue: _Dialogue) -> tuple[object, ...]:
    if request.user is not None:
        return (request.key_hash, request.user)
    return (request.key_hash, None, dialogue.turns[0])
