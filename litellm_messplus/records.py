"""The records of the log, each column declared once.

The log is ordered: each record gets a position when it is committed, and the state of the router is
the fold of the records in that order."""

import os
import time
from dataclasses import KW_ONLY
from datetime import datetime
from typing import Any

from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.held import Gated
from litellm_messplus.core.hold import LinePlace
from litellm_messplus.core.surface import Surface
from litellm_messplus.rows import FOREIGN, UNBOUNDED, always, column, public, record
from litellm_messplus.runtime.vocabulary import (
    CallRole,
    CallStatus,
    Change,
    CostSource,
    Failure,
    GradingStatus,
    LabelKind,
    Preferred,
)
from litellm_messplus.switching.modes import ROUTED, Trial

# The plugin's own ids: unique, hard to guess, and in order of time.

DRAWN, TAIL = 4096, 8
"""Random bytes requested from the system at once, and of an id: eight at a time took 40 us."""

_tails: list[bytes] = []


def new_id() -> str:
    """Make an id of 32 hexadecimal digits: the time in nanoseconds, then 64 random bits.

    Ordered by time, so that a row goes to the end of every index on it: random ids touch a separate
    page for each row and index, which took more CPU than the rest of the writing.
    """
    return f"{time.time_ns():016x}{_random_tail().hex()}"


def _random_tail() -> bytes:
    try:
        return _tails.pop()
    except IndexError:
        drawn = os.urandom(DRAWN)
        _tails.extend([drawn[start : start + TAIL] for start in range(TAIL, DRAWN, TAIL)])
        return drawn[:TAIL]


os.register_at_fork(after_in_child=_tails.clear)  # else two processes would use the same


# The facets of a request that belong to no feature: the caller.


@record
class Asker:
    """The caller of a request, and the form of the call."""

    litellm_call_id: str = public(
        "LiteLLM's id (`x-litellm-call-id`). A client may set it, so it may repeat.",
        size=FOREIGN,
        index=True,
    )
    key_hash: str | None = column("Hash of the caller's key.")
    team_id: str | None = public("The key's team.")
    call_type: str = public("LiteLLM's call type, such as `acompletion`.", size=64)
    is_stream: bool = public("Whether the answer was streamed.")


@record
class Names:
    """The names of the caller and of its request that people know."""

    key_alias: str | None = public("The key's alias, where `store_identities` is on.", default=None)
    user_id: str | None = public("The key's user, where `store_identities` is on.", default=None)
    end_user: str | None = public(
        "The end user that the client named, where `store_identities` is on.", default=None
    )
    tags: tuple[str, ...] | None = public(
        "Tags of the request, its key and team, where `store_identities` is on.", default=None
    )


@record
class RequestRecord:
    """One user call and the decision that was made for it. ``t`` is 0 until the commit, which gives
    it the next number of its level."""

    _: KW_ONLY
    request_id: str = public("Our own id of the request.", size=64)
    created_at: datetime = public("When it was decided, UTC.")
    zoo: str = public("The requested `model_name`.")
    service_level: str = public(
        "The promise that it counts towards; with the suffix `:before`, the stream of those served "
        "as before, which count towards none; with `:asked`, of those that asked for the level."
    )
    t: int = public(
        "Its number within the service level, from 1, without gaps.",
        is_large=True,
        init=False,
        default=0,
    )
    alpha: float = public("The share promised at that time.")
    policy: str = public("The policy that decided.", size=64)
    asker: Asker
    encoder: str = public("The encoder that made the features.")
    features: Features | None = column(
        "Features of the prompt: little-endian float32; NULL where they came too late.",
        default=None,
    )
    prompt_characters: int = public("Length of the prompt's text.", default=0)
    estimated_cost: dict[str, float] = public(
        "Expected cost per healthy candidate that could take it, in the zoo's unit.",
        default_factory=dict,
    )
    estimated_satisfaction: dict[str, float] = public(
        "Predicted probability of satisfaction per healthy candidate that could take it.",
        default_factory=dict,
    )
    estimated_cost_largest: float | None = public(
        "Expected cost of `largest`, for savings.", init=False, default=None
    )
    queue: float = public("The virtual queue at the decision.")
    chosen: str = public("The candidate chosen to serve; `litellm` for LiteLLM's own choice.")
    largest: str = public(
        "The baseline of savings: the zoo's largest candidate, or, if it could not take the "
        "request, the most expensive one that could."
    )
    is_exploration: bool = public(
        "Whether anything but the best choice was tried: in addition to the served candidate, or "
        "(policy `adaptive`) in its place.",
        default=False,
    )
    exploration_probability: float = public(
        "p_t: the probability of an exploration; under `adaptive`, of one in place of the best "
        "choice.",
        default=0.0,
    )
    reason: Reason = public("Why this candidate was chosen: one of a few words.", size=UNBOUNDED)
    is_within_reach: bool = public(
        "Whether a candidate was expected to be able to hold alpha, if the policy estimates that.",
        earlier=True,
        default=True,
    )
    label_probability: float | None = public(
        "The probability of the draw that bought labels of its answers; NULL where none are "
        "bought.",
        default=None,
    )
    decision_seconds: float = public("How long the decision took.", default=0.0)
    prompt: str | None = public(
        "The prompt's text, where `store_text` is on.", size=UNBOUNDED, words=always, default=None
    )
    aim: float | None = public("The target of the queue: alpha, with a margin.", default=None)
    expected_satisfaction: float | None = public(
        "Predicted for the chosen candidate; the queue uses it until a label arrives.",
        default=None,
    )
    price: float | None = public(
        "What one more satisfied request might cost; NULL under `paper`, which has V.", default=None
    )
    propensity: float | None = public(
        "The probability that the chosen candidate had of being chosen.", default=None
    )
    exploration_calls: int = public(
        "Candidates to be called in addition to the chosen one.", is_nullable=True, default=0
    )
    encode_seconds: float | None = public(
        "How long the features took, waiting included; NULL where they came too late.", default=None
    )
    surface: Surface | None = column(
        "Numbers read directly off the prompt (length, numbers, code, turns, ...): little-endian "
        "float32, which the heads read in addition to the features.",
        default=None,
    )
    surface_version: str | None = public(
        "Version of what the surface's numbers mean.", size=64, default=None
    )
    expected_t: int | None = public(
        "The number used for its decision: differs from `t` if other requests were decided and not "
        "yet logged; NULL if it was `t`.",
        is_large=True,
    )
    gated: Gated | None = None
    trial: Trial = ROUTED
    names: Names | None = None
    place: LinePlace | None = None
    is_alone: bool = column(
        "Whether no second model may be called for it, as its tools may have effects.",
        default=False,
    )

    def __post_init__(self) -> None:
        cost = self.estimated_cost.get(self.largest)
        object.__setattr__(self, "estimated_cost_largest", cost)

    @property
    def is_forced(self) -> bool:
        """Whether a single candidate could take it."""
        return self.gated is not None and self.gated.is_forced


@record
class CallRecord:
    """One model invoked for a request, when it has ended."""

    call_id: str = public(
        "The request's id, a dot, a number; `first` in its place if it was replaced.", size=80
    )
    request_id: str = public("The request it was made for.", size=64, index=True)
    ended_at: datetime = public("When it ended, UTC.")
    role: CallRole = public(
        "`served` (the user saw it), `exploration`, or `replaced`: it was answered first, and "
        "another model was called because of how the answer looks.",
        size=16,
    )
    status: CallStatus = public("`success` or `failure`.", size=16)
    candidate: str | None = public("The candidate; NULL if a fallback outside the zoo served.")
    deployment_id: str | None = public("LiteLLM's id of the deployment.", default=None)
    model: str | None = public("The model as LiteLLM names it.", default=None)
    response_id: str | None = public(
        "The `id` in the answer.", size=FOREIGN, index=True, default=None
    )
    prompt_tokens: int | None = public("Tokens read; NULL if unknown.", default=None)
    completion_tokens: int | None = public("Tokens written; NULL if unknown.", default=None)
    cached_tokens: int | None = public("Prompt tokens in the endpoint's cache.", default=None)
    written_tokens: int | None = public("Prompt tokens that it wrote to its cache.", default=None)
    reasoning_tokens: int | None = public("Answer tokens spent on reasoning.", default=None)
    cost: float | None = public(
        "In the zoo's unit; NULL if unknown, which is not zero.", default=None
    )
    cost_source: CostSource = public(
        "`measured`, `counted`, `estimated` or `unknown`.", size=16, default=CostSource.UNKNOWN
    )
    cost_largest: float | None = column(
        "What `largest` of the request charges for the same tokens; NULL if unknown.", default=None
    )
    seconds: float | None = public("From the start of the call to its end.", default=None)
    is_cache_hit: bool = public("Whether LiteLLM's cache answered.", default=False)
    served_not_chosen: bool = public("Whether LiteLLM did not follow the router.", default=False)
    error: str | None = public("What went wrong.", size=UNBOUNDED, default=None)
    failure: Failure | None = public(
        "What failed: `upstream`, `no_deployment`, `deadline`, `client_gone`, `refused` if the "
        "request itself was at fault, `unknown` if nothing told; NULL if an answer came.",
        size=16,
        default=None,
    )
    answer: str | None = public(
        "The answer's text, where `store_text` is on.", size=UNBOUNDED, words=always, default=None
    )
    answer_surface: AnswerSurface | None = column(
        "Numbers read directly off the answer (length, form, hedges, how it ends, ...): "
        "little-endian float32; NULL for an answer of LiteLLM's cache.",
        default=None,
    )
    answer_version: str | None = public(
        "Version of what the answer's numbers mean.", size=64, default=None
    )
    prompt_said: float | None = public(
        "Satisfaction that the prompt predicted, where the answer was read to keep or replace it.",
        default=None,
    )
    answer_said: float | None = public(
        "Satisfaction that the prompt and the answer predicted together.", default=None
    )


def _is_by_judge(label: Any) -> bool:
    """Tell whether a comment is a judge's, who may quote the user; feedback is sent to be kept."""
    return label.kind is LabelKind.JUDGE


@record
class LabelRecord:
    """A source's label on one call; a later one of the same source replaces it."""

    label_id: str = public("Our own id of the verdict.", size=64)
    call_id: str = public("The call that it judges.", size=80)
    request_id: str = public("The request of that call.", size=64, index=True)
    created_at: datetime = public("When it was given, UTC.", index=True)
    kind: LabelKind = public("`feedback`, `check` or `judge`.", size=16, earlier=LabelKind.FEEDBACK)
    source: str = public("Who judged: its kind; for a check also a colon and its name.", size=64)
    value: float = public("Satisfaction from 0 to 1.")
    weight: float = public("How much it counts; 0 is only logged.", default=1.0)
    comment: str | None = public(
        "The user's words, or the reason for the judgement.",
        size=UNBOUNDED,
        words=_is_by_judge,
        default=None,
    )
    probability: float | None = public(
        "The probability of the draw that bought it: it stands for 1 / probability requests. NULL "
        "if no draw did.",
        default=None,
    )


@record
class GradingRecord:
    """A judge was asked to grade the answers to one request; its verdicts on them are labels."""

    grading_id: str = column("Our own id of the grading.", size=64)
    request_id: str = column("The request whose answers were graded.", size=64, index=True)
    created_at: datetime = column("When it ended, UTC.", index=True)
    judge: str = column("The model group that graded.")
    status: GradingStatus = column("`graded`, `nonsense` or `failure`.", size=16)
    answers: int = column("Number of answers shown.")
    cost: float | None = column("In dollars, at LiteLLM's price; NULL if unknown.", default=None)
    prompt_tokens: int | None = column("Tokens read; NULL where none were reported.", default=None)
    completion_tokens: int | None = column(
        "Tokens written; NULL where none were reported.", default=None
    )
    seconds: float | None = column("How long the judge took.", default=None)
    error: str | None = column("What went wrong.", size=UNBOUNDED, default=None)
    preferred: Preferred | None = column(
        "In a comparison, the place of the better answer: `first`, `second` or `neither`; NULL for "
        "a grading.",
        size=16,
        default=None,
    )
    zoo_cost: float | None = column(
        "The cost in the zoo's unit; NULL where it is unknown.", default=None
    )


@record
class CandidateRecord:
    """A candidate came, changed its price, or went."""

    event_id: str = column("Our own id of the change.", size=64)
    zoo: str = column("The zoo that the candidate is one of.")
    candidate: str = column("The candidate.")
    created_at: datetime = column("When a worker saw it, UTC.")
    change: Change = column("`appeared`, `priced` or `gone`.", size=16)
    price: dict[str, Any] | None = column(
        "What it costs, by part; NULL if it is gone.", default=None
    )
    number: int = column("Number of the change among those of the candidate, from 1.", default=1)


Record = RequestRecord | CallRecord | LabelRecord | GradingRecord | CandidateRecord


def served_call_id(request_id: str) -> str:
    """Return the id of the served call, known before it has ended, so that it can be labelled."""
    return f"{request_id}.0"


def exploration_call_id(request_id: str, number: int) -> str:
    """Return the id of the ``number``-th exploration call of a request, counted from 1."""
    return f"{request_id}.{number}"


def replaced_call_id(request_id: str) -> str:
    """Return the id of the call that answered first, if its answer was replaced."""
    return f"{request_id}.first"


def request_of(call_id: str) -> str:
    """Return the id of the request that a call was made for."""
    return call_id.rpartition(".")[0]


def storable(text: str) -> str:
    """Return the text as every database stores it: zero characters and unpaired surrogates
    replaced."""
    if text.isascii() and "\0" not in text:
        return str(text)
    return str(text).replace("\0", "�").encode("utf-8", "replace").decode()
