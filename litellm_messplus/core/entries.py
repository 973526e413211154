"""Entries of the log as the fold reads them: each holds all that is needed to apply it."""

from dataclasses import dataclass
from typing import NamedTuple

from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.answer_heads import Turn
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.predictor import Before, Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import Surface
from litellm_messplus.core.verdict import Given
from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.vocabulary import Change


@dataclass(frozen=True, slots=True)
class Example:
    """An example to learn from: the features of a prompt, with the encoder that made them, None if
    they came too late for the decision; and its surface, None if none was logged. A forced one,
    which no other candidate could have taken, does not measure the value of a choice. ``answer`` is
    the surface of the candidate's answer, ``before`` another's answer to the same request that was
    read first; None if there is none, or none was logged. ``turn`` is whether it was replaced, or
    given instead of another one."""

    request_id: str
    encoder: str
    features: Features | None
    candidate: str
    is_exploration: bool
    surface: Surface | None = None
    is_forced: bool = False
    answer: AnswerSurface | None = None
    before: Before | None = None
    turn: Turn = Turn.ONLY

    @property
    def seen(self) -> Seen:
        """The answers to the request that were read."""
        return Seen(self.answer, self.before, self.turn)

    @property
    def prompt(self) -> Prompt:
        """The prompt to learn from, in the form that the heads take."""
        return Prompt(self.features, self.surface)


class FailedCall(NamedTuple):
    """A call that ended without an answer, as the account needs it: of a request of
    ``service_level`` with ``alpha``, which it served or explored. ``is_bought`` if labels of its
    answers were to be bought."""

    service_level: str
    request_id: str
    alpha: float
    is_served: bool
    is_bought: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A request was numbered and decided, ``at`` a time in seconds since 1970.

    ``expected_shortfall`` is alpha minus the satisfaction predicted for the chosen candidate;
    ``calls`` the number of candidates to call; ``is_bought`` if labels of their answers are bought.
    """

    position: int
    zoo: str
    service_level: str
    request_id: str
    expected_shortfall: float
    calls: int
    at: float
    is_bought: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """A call ended. ``example`` is None if it failed, a model outside the zoo answered, or
    LiteLLM's cache repeated an answer; ``given`` are the earlier labels that stand: the newest of
    each source. ``failed`` is set if no answer came."""

    position: int
    zoo: str
    call_id: str
    candidate: str | None
    prompt_characters: int
    prompt_tokens: float | None
    completion_tokens: float | None
    example: Example | None
    given: tuple[Given, ...]
    seconds: float | None = None
    failed: FailedCall | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label, ``given``, was logged. ``earlier`` are the standing ones on the same call: the
    newest of each source.

    ``example`` is None until the call has ended, because the model is unknown, and also later if a
    model outside the zoo served, or LiteLLM's cache repeated an answer. ``is_forced`` if only one
    candidate could take the request. ``of_choice``, for a request served as before, is whether the
    call is of the model that the router would have chosen; None for a routed one. ``is_failed`` if
    the call had ended without an answer.
    """

    position: int
    zoo: str
    service_level: str
    request_id: str
    call_id: str
    alpha: float
    is_served: bool
    given: Given
    earlier: tuple[Given, ...]
    example: Example | None
    is_bought: bool = False
    is_forced: bool = False
    of_choice: bool | None = None
    is_failed: bool = False

    @property
    def moves_queue(self) -> bool:
        """Whether it measures the router's choice."""
        return self.is_served if self.of_choice is None else self.of_choice


@dataclass(frozen=True, slots=True)
class CandidateChanged:
    """A candidate appeared, changed its price, or went, ``at`` a time in seconds since 1970.
    ``price`` is None if it went; ``number`` counts the changes of this candidate from 1."""

    position: int
    zoo: str
    candidate: str
    change: Change
    price: Price | None
    at: float
    number: int = 1


Entry = Decided | Settled | Labelled | CandidateChanged
