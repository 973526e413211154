"""A decision from outside: the question, the choice, and the reading of an answer."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from litellm_messplus.core.caches import Ahead
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.settings.promise import ServiceLevel


@dataclass(frozen=True, slots=True)
class Question:
    """A request that any of ``candidates`` could serve now.

    Missing parts of ``prompt`` stand at the average of all prompts. ``most_completion_tokens`` is
    the longest answer that the request allows, and so the longest expected. ``prompt_tokens`` are
    by candidate, if counted; else they are estimated from the characters. It ``is_gated`` if other
    healthy candidates could not take it. ``ahead`` is what it finds in its candidates' caches, and
    what will follow it there; unknown for candidates without an entry. It ``is_alone`` if no
    candidate may be called in addition to the serving one. It ``may_go_on`` if its
    answer may be replaced by a second one.
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
    is_alone: bool = False
    may_go_on: bool = False

    @property
    def is_forced(self) -> bool:
        """Whether only one candidate can take it."""
        return self.is_gated and len(self.candidates) == 1


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
    """A decision and its situation."""

    situation: Situation
    decision: Decision
