"""What is logged: requests, calls and labels. Everyone's words, nobody's code.

The log is ordered: each record gets a position when it becomes durable, and the state of the
router is the fold of the records in that order."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.surface import Surface
from litellm_messplus.routing.decision import Reason
from litellm_messplus.switching.modes import Arm
from litellm_messplus.vocabulary import (
    CallRole,
    CallStatus,
    Change,
    CostSource,
    Failure,
    GradingStatus,
    LabelKind,
    Preferred,
)

# Ids of our own: unique, not to be guessed, and in order of time.

DRAWN = 4096
"""Random bytes that are asked of the system at once: for eight at a time, asking took 40 us."""
TAIL = 8

_tails: list[bytes] = []


def new_id() -> str:
    """Make an id of 32 hexadecimal digits: the time in nanoseconds, then 64 random bits.

    In order of time, so that a row goes to the end of every index on it: random ids touch a page
    of their own for each row and index, which took more CPU than the rest of the writing.
    """
    return f"{time.time_ns():016x}{_random_tail().hex()}"


def _random_tail() -> bytes:
    try:
        return _tails.pop()
    except IndexError:
        drawn = os.urandom(DRAWN)
        _tails.extend(drawn[start : start + TAIL] for start in range(TAIL, DRAWN, TAIL))
        return drawn[:TAIL]


os.register_at_fork(after_in_child=_tails.clear)  # or two processes would give the same ones out


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One user call and the decision that was made for it.

    ``expected_t`` is the number that the decision was made with: the log gives the request its
    ``t`` at the commit, which is another one where several workers decide at once. ``features`` is
    None where they did not come in time; ``encode_seconds`` is how long they took, from asking to
    having them, ``encode_joules`` their energy above idle, where it is measured.
    ``label_probability`` is that of the draw that bought labels of its answers; None where none are
    bought. ``eligible`` are the healthy candidates that could take it, ``gated_by`` what told them
    apart; None where all could. Where it was served as ``before``, ``would_choose`` is what the
    router decided aside, at an expected ``would_cost``; ``sample_probability`` is there where
    another model was called unseen. ``key_alias`` to ``tags`` say who asked, where that is kept.
    ``conversation`` and ``line`` are the ids of the requests that began them, ``turn`` is its
    number in the line, and ``prefix`` the digest of its whole prompt; all None where conversations
    are not held. ``hold`` says why it was held, or why no longer. ``limits`` is where its level
    stood against the limits beside alpha, None where it has none. ``counted_with`` is the first
    request of its conversation, where the promise counts conversations and that one stands for it;
    ``session`` is there the digest of the session that the client named.
    """

    request_id: str
    created_at: datetime
    zoo: str
    service_level: str
    expected_t: int
    alpha: float
    policy: str
    litellm_call_id: str
    key_hash: str | None
    team_id: str | None
    call_type: str
    is_stream: bool
    encoder: str
    features: Features | None
    prompt_characters: int
    estimated_cost: dict[str, float]
    estimated_satisfaction: dict[str, float]
    queue: float
    chosen: str
    largest: str
    is_exploration: bool
    exploration_probability: float
    reason: Reason
    decision_seconds: float
    aim: float | None = None
    expected_satisfaction: float | None = None
    price: float | None = None
    propensity: float | None = None
    exploration_calls: int = 0
    encode_seconds: float | None = None
    encode_joules: float | None = None
    prompt: str | None = None
    surface: Surface | None = None
    surface_version: str | None = None
    is_within_reach: bool = True
    label_probability: float | None = None
    eligible: tuple[str, ...] | None = None
    gated_by: tuple[str, ...] | None = None
    arm: Arm = Arm.ROUTED
    would_choose: str | None = None
    would_cost: float | None = None
    sample_probability: float | None = None
    conversation_draw: float | None = None
    key_alias: str | None = None
    user_id: str | None = None
    end_user: str | None = None
    tags: tuple[str, ...] | None = None
    conversation: str | None = None
    line: str | None = None
    prefix: str | None = None
    turn: int | None = None
    hold: str | None = None
    counted_with: str | None = None
    session: str | None = None
    limits: dict[str, Any] | None = None

    @property
    def is_forced(self) -> bool:
        """Whether a single candidate could take it."""
        return is_forced(self.eligible)


def is_forced(eligible: Sequence[str] | None) -> bool:
    """Return whether these candidates leave no choice, as a record or a row has them."""
    return eligible is not None and len(eligible) == 1


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One model invoked for a request, when it has ended.

    ``candidate`` is None where a fallback outside the zoo served. Tokens are None where the
    endpoint reported none. ``failure`` says who failed, None where an answer came.
    """

    call_id: str
    request_id: str
    ended_at: datetime
    role: CallRole
    status: CallStatus
    candidate: str | None
    deployment_id: str | None = None
    model: str | None = None
    response_id: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    cost_source: CostSource = CostSource.UNKNOWN
    seconds: float | None = None
    is_cache_hit: bool = False
    error: str | None = None
    answer: str | None = None
    failure: Failure | None = None


LONGEST_ERROR = 2000
"""Characters of an error that are logged."""
REFUSALS = frozenset({400, 413, 422})
"""The HTTP statuses of a request that is at fault itself: malformed, too long, or against the
provider's policy."""
REFUSED = "refused with "


def error_words(error: BaseException) -> str:
    """Write an error for the log; first of all whether the request itself was refused."""
    status = getattr(error, "status_code", None)
    refused = f"{REFUSED}{status}: " if status in REFUSALS else ""
    return f"{refused}{type(error).__name__}: {error}"[:LONGEST_ERROR]


def is_refusal(words: str | None) -> bool:
    """Tell whether these words in the log are of a request that was refused itself."""
    return words is not None and words.startswith(REFUSED)


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """A source's word on one call; a later label of the same source replaces it. ``weight`` 0
    keeps it in the log alone. ``probability`` is that of the draw that bought it; None of one that
    nobody drew."""

    label_id: str
    call_id: str
    request_id: str
    created_at: datetime
    kind: LabelKind
    source: str
    value: float
    weight: float = 1.0
    comment: str | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class GradingRecord:
    """A judge was asked to grade the answers to one request; what it said of them are labels.

    ``cost`` is in dollars whatever the zoo counts in, and None where nobody knows it. ``preferred``
    is of a comparison of two answers, and None of a grading of each on its own.
    """

    grading_id: str
    request_id: str
    created_at: datetime
    judge: str
    status: GradingStatus
    answers: int
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    error: str | None = None
    preferred: Preferred | None = None


@dataclass(frozen=True, slots=True)
class EnergyRecord:
    """The energy of a call, measured above idle, known some time after its end.

    ``cost`` is in the zoo's unit; None where the deployment's price is not one of energy.
    """

    call_id: str
    request_id: str
    measured_at: datetime
    joules: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class LessonRecord:
    """A lesson: what a model made of a prompt, known from elsewhere. It teaches, and counts as no
    request.

    ``batch`` names where it comes from. ``completion_tokens`` need not be whole: of a recording
    they are told by its cost; None where nobody knows.
    """

    lesson_id: str
    batch: str
    zoo: str
    created_at: datetime
    candidate: str
    encoder: str
    features: Features | None
    surface: Surface | None
    surface_version: str | None
    prompt_characters: int
    completion_tokens: float | None
    value: float

    @property
    def request_id(self) -> str:
        """The id of the prompt, which several models may have answered."""
        return request_of(self.lesson_id)


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """A candidate came, changed its price, or went. ``price`` is as JSON has it, None where it
    went; ``number`` counts the changes of this candidate from 1."""

    event_id: str
    zoo: str
    candidate: str
    created_at: datetime
    change: Change
    price: dict[str, Any] | None = None
    number: int = 1


Record = (
    RequestRecord
    | CallRecord
    | LabelRecord
    | GradingRecord
    | EnergyRecord
    | LessonRecord
    | CandidateRecord
)


def without_text(record: Record) -> Record:
    """Drop what may quote a user: the prompt, the answer, and what a judge says of them.

    What a user writes as the comment of feedback is sent to be kept, and stays.
    """
    match record:
        case RequestRecord():
            return without_prompt(record)
        case CallRecord(answer=str()):
            return replace(record, answer=None)
        case LabelRecord(kind=LabelKind.JUDGE, comment=str()):
            return replace(record, comment=None)
    return record


def without_prompt(record: RequestRecord) -> RequestRecord:
    """Drop the text of the prompt."""
    return record if record.prompt is None else replace(record, prompt=None)


def served_call_id(request_id: str) -> str:
    """Return the id of the call that the user saw: known before it has ended, so it can be
    labelled."""
    return f"{request_id}.0"


def exploration_call_id(request_id: str, number: int) -> str:
    """Return the id of the ``number``-th exploration call of a request, counted from 1."""
    return f"{request_id}.{number}"


def request_of(call_id: str) -> str:
    """Return the id of the request that a call was made for."""
    return call_id.rpartition(".")[0]
