"""What could have been had, known only once every model has answered every task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litellm_messplus.demo.asides import Aside
from litellm_messplus.demo.session import Outcome
from litellm_messplus.replay.hindsight import Hindsight

NOT_ASKED = "not asked: --ask-all"
JOULES = "not known: the zoo counts in joules"
SHORT = "no model meets alpha"
TOLERANCE = 0.01
"""How far LiteLLM's costs and the zoo's may be apart, as a share, and still be the same money."""

Asked = Mapping[str, Aside]
"""Each candidate's answer to one task."""


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """Costs of all tasks: of the cheapest fixed mix of models that meets alpha, and of the cheapest
    choice that knows every answer. None where they are not known; ``note`` says why, or what they
    do not keep."""

    hindsight_mix: float | None = None
    oracle: float | None = None
    note: str | None = NOT_ASKED

    @classmethod
    def of(cls, asked: Sequence[Asked], outcomes: Sequence[Outcome]) -> "Yardsticks":
        """Of every task's answers, in the order of ``outcomes``; not empty, and the same candidates
        for each."""
        unknown = _uncharged(asked) or _other_money(asked, outcomes)
        if unknown is not None:
            return cls(note=unknown)
        alpha = outcomes[-1]["alpha"]
        cost = np.array([[aside.cost for aside in row.values()] for row in asked], float)
        truth = np.array([[aside.satisfied for aside in row.values()] for row in asked], float)
        known = Hindsight.of(truth, cost, alpha)
        note = SHORT if known.satisfaction.max() < alpha else None
        return cls(known.lp_cost, known.oracle_cost, note)


def _uncharged(asked: Iterable[Asked]) -> str | None:
    """Why costs are unknown where LiteLLM charges nothing that it could tell."""
    for row in asked:
        for candidate, aside in row.items():
            if aside.cost is None:
                return f"not known: LiteLLM states no cost of {candidate}"
    return None


def _other_money(asked: Sequence[Asked], outcomes: Sequence[Outcome]) -> str | None:
    """Why costs are unknown where LiteLLM charges for a call what the zoo does not count for it."""
    charged: dict[str, float] = {}
    counted: dict[str, float] = {}
    for row, outcome in zip(asked, outcomes, strict=True):
        for candidate, aside, call in _alike(row, outcome):
            charged[candidate] = charged.get(candidate, 0.0) + (aside.cost or 0.0)
            counted[candidate] = counted.get(candidate, 0.0) + call["cost"]
    for candidate, cost in counted.items():
        if abs(charged[candidate] - cost) > TOLERANCE * cost:
            return (
                f"not known: LiteLLM charges ${charged[candidate]:.6g} for calls of {candidate} "
                f"that the zoo counts as {cost:.6g}"
            )
    return None


def _alike(row: Asked, outcome: Outcome) -> Iterator[tuple[str, Aside, Mapping[str, Any]]]:
    """Calls of the request and aside that should cost the same: one deployment, equal tokens."""
    for call in outcome["calls"]:
        aside = row.get(call["candidate"])
        if aside is None or call["cost"] is None or call["is_cache_hit"]:
            continue
        tokens = (call["prompt_tokens"], call["completion_tokens"], call["cached_tokens"])
        if (call["deployment_id"], tokens) == (aside.deployment, aside.tokens):
            yield call["candidate"], aside, call
