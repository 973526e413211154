"""A decision from outside: the question, the choice, and the reading of an answer."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litellm_messplus.conversations.caches import Ahead
from litellm_messplus.deciding.expectations import use_of
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.state.limits import logged


@dataclass(frozen=True, slots=True)
class Question:
    """A request that any of ``candidates`` could serve now.

    Missing parts of ``prompt`` stand at the average of all prompts. ``most_completion_tokens`` is
    the longest answer that the request allows, and so the longest expected. ``prompt_tokens`` are
    by candidate, if counted; else they are estimated from the characters. It ``is_gated`` if other
    healthy candidates could not take it. ``ahead`` is what it finds in its candidates' caches, and
    what will follow it there; unknown for candidates without an entry. It came ``at`` a time in
    seconds since 1970, by which the budget of a day is allotted. It ``is_alone`` if no candidate
    may be called in addition to the serving one. ``counted_with`` is the first request of its
    conversation, if the promise counts that instead. It ``may_go_on`` if its answer may be replaced
    by a second one.
    """

    request_id: str
    level: ServiceLevel
    prompt: Prompt
    prompt_characters: int
    candidates: tuple[str, ...]
    most_completion_tokens: float = math.inf
    prompt_tokens: Mapping[str, float] = field(default_factory=dict)
    is_gated: bool = False
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    counted_with: str | None = None
    at: float = 0.0
    is_alone: bool = False
    may_go_on: bool = False

    @property
    def is_forced(self) -> bool:
        """Whether only one candidate can take it."""
        return self.is_gated and len(self.candidates) == 1


# The keys of what is logged of a decision's inputs.

BASIS, ALONE, LABELLED, LEFT, GOES_ON = "basis", "alone", "labelled", "left", "may_go_on"
FACTORS, USUAL_PARTS = "price_factors", "usual_parts"


class Reading(NamedTuple):
    """Predictions of the chosen candidate's satisfaction, from the ``prompt`` and from its
    ``answer``; the candidate that it ``goes_on_to``, to answer instead, and the satisfaction
    ``expected`` of that; None if the answer is kept."""

    prompt: float
    answer: float
    goes_on_to: str | None = None
    expected: float | None = None


Labelled = Callable[[Situation], bool | None]
"""Whether all answers to a request will get a label; None if only the log shows it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision and its situation, from the state that is the fold of the log up to ``as_of``.
    ``inputs`` are what else it needs to be made again, as they are logged."""

    situation: Situation
    decision: Decision
    as_of: int
    inputs: dict[str, Any]


def logged_limits(choice: Choice) -> dict[str, Any] | None:
    """Return what is logged of the limits in addition to alpha; None without any."""
    limits, use = choice.situation.limits, use_of(choice.situation, choice.decision)
    return None if limits is None or use is None else logged(limits, use)
