"""The log as the fold reads it: each entry holds all that is needed to apply it."""

from dataclasses import dataclass
from typing import NamedTuple

from litellm_messplus.costs.price import Price
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import Surface
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.state.credits import Shares
from litellm_messplus.state.verdict import Given


@dataclass(frozen=True, slots=True)
class Example:
    """The example that can be learned from: the features of a prompt, under the encoder that made
    them, or None where they came too late to decide by; and its surface, or None where none was
    logged. A forced one, which no other candidate could have taken, says nothing of what a choice
    is worth."""

    request_id: str
    encoder: str
    features: Features | None
    candidate: str
    is_exploration: bool
    surface: Surface | None = None
    is_forced: bool = False

    @property
    def prompt(self) -> Prompt:
        """The prompt that can be learned from, as the heads take it."""
        return Prompt(self.features, self.surface)


# What a service level with limits beside alpha expects of a request, and what came of it.


class FailedCall(NamedTuple):
    """A call that ended without an answer, in the words of the account: of a request of
    ``service_level`` with that ``alpha``, which it served or was made beside. ``is_bought`` says
    that labels of its answers were to be bought."""

    service_level: str
    request_id: str
    alpha: float
    is_served: bool
    is_bought: bool


class LimitedUse(NamedTuple):
    """The use that is expected of a request of a level with limits: the probability that it is
    late, and what all its calls cost."""

    late: float
    cost: float


class LimitedCall(NamedTuple):
    """A call of a request of a level with limits, decided ``at`` seconds since 1970. ``is_late`` is
    None where it says nothing of that, ``cost`` where nobody knows."""

    service_level: str
    request_id: str
    at: float
    is_served: bool
    is_late: bool | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Decided:
    """A request was numbered and decided, ``at`` a time in seconds since 1970.

    ``expected_shortfall`` is alpha minus the satisfaction predicted for the chosen candidate;
    ``calls`` is how many candidates were to be called; ``is_bought`` says that labels of their
    answers are bought. ``expected_use`` is None of a level without limits beside alpha.
    ``counted_with`` is the first request of its conversation, where the promise counts that in its
    place; it ``is_held`` where the model of the turn before goes on, as far as is known.
    """

    position: int
    zoo: str
    service_level: str
    request_id: str
    expected_shortfall: float
    calls: int
    at: float
    is_bought: bool = False
    counted_with: str | None = None
    is_held: bool = False
    expected_use: LimitedUse | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A call ended. ``example`` is None where it failed, a model outside the zoo answered, or
    LiteLLM's cache repeated an answer; ``given`` are the labels that came before and stand: the
    newest of each source. There are none where they taught already what served the conversation.
    ``failed`` is there where no answer came; ``limited`` is None of a level without limits beside
    alpha."""

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
    limited: LimitedCall | None = None
    failed: FailedCall | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label came in: ``given``. Those that stood on the same call are ``earlier``: the newest of
    each source.

    ``example`` is None while the call has not ended, so that nobody knows yet which model served,
    and for ever where a model outside the zoo did, or LiteLLM's cache repeated an answer.
    ``is_forced`` where a single candidate could take the request. ``of_choice`` says of a request
    that was served as before whether the call is one of the model that the router would have
    chosen; None of a routed one. ``shares`` says who served the conversation up to here, where the
    label is on one that is counted as one and has gone on; the example is then of its first
    request. ``is_failed`` where the call had ended without an answer.
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
    shares: Shares = ()
    is_failed: bool = False

    @property
    def moves_queue(self) -> bool:
        """Whether it tells what the router's choice is worth."""
        return self.is_served if self.of_choice is None else self.of_choice


@dataclass(frozen=True, slots=True)
class Taught:
    """A lesson: what a model made of a prompt, known from elsewhere. It moves no queue.

    ``batch`` names where it comes from; ``completion_tokens`` are None where nobody knows.
    """

    position: int
    zoo: str
    batch: str
    lesson_id: str
    example: Example
    prompt_characters: int
    completion_tokens: float | None
    value: float


@dataclass(frozen=True, slots=True)
class CandidateChanged:
    """A candidate came, changed its price, or went, ``at`` a time in seconds since 1970. ``price``
    is None where it went; ``number`` counts the changes of this candidate from 1."""

    position: int
    zoo: str
    candidate: str
    change: Change
    price: Price | None
    at: float
    number: int = 1


Entry = Decided | Settled | Labelled | Taught | CandidateChanged
