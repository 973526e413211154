"""The log as the fold reads it: each entry holds all that is needed to apply it."""

from dataclasses import dataclass

from litellm_messplus.prediction.encoder import Features


@dataclass(frozen=True, slots=True)
class Example:
    """What a head can learn from: the features of a prompt, under the encoder that made them."""

    encoder: str
    features: Features
    candidate: str
    is_exploration: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A request was numbered and decided."""

    position: int
    zoo: str
    service_level: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A call ended. ``example`` and ``satisfaction`` are set where its label came first."""

    position: int
    zoo: str
    candidate: str | None
    prompt_characters: int
    prompt_tokens: int | None
    completion_tokens: int | None
    example: Example | None
    satisfaction: float | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A verdict came in. ``previous`` is the one that it replaces.

    ``example`` is None while the call has not ended, so that nobody knows yet which model served,
    and for ever where a model outside the zoo did.
    """

    position: int
    zoo: str
    service_level: str
    alpha: float
    is_served: bool
    satisfaction: float
    previous: float | None
    example: Example | None


Entry = Decided | Settled | Labelled
