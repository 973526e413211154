"""LiteLLM's own `adaptive_router`, the bandit of the installed package, fed with labels.

Its choice consists of four functions, which are called here as they are: `classify_prompt` sorts a
prompt into one of seven request types by regular expressions, `initial_cell` starts a Beta
posterior for every type and model, `pick_best` draws from the posteriors and weighs the draw (0.7)
against the model's normalised cost (0.3), and `apply_delta` adds a verdict, up to LiteLLM's cap of
200 samples a cell. The class around them accepts no labels: it guesses satisfaction from phrases in
a conversation's later turns. So here a label is one success or one failure, as it counts a turn
that it takes for satisfied or not.
"""

import math
import os
import random
from functools import cache
from typing import Any

import numpy as np

from litellm_messplus.replay.recording import Matrix, Recording
from litellm_messplus.replay.run import Late
from litellm_messplus.replay.summary import Outcome


class LiteLLMBandit:
    """The bandit of LiteLLM's adaptive router. ``costs`` stands for the prices that an operator
    writes into `model_info`: one per model. ``quality`` is the weight of quality, LiteLLM's own if
    None; that of cost is the rest."""

    def __init__(self, costs: dict[str, float], seed: int, quality: float | None = None) -> None:
        from litellm.router_strategy.adaptive_router import bandit
        from litellm.types.router import (
            AdaptiveRouterPreferences,
            AdaptiveRouterWeights,
            RequestType,
        )

        self._bandit = bandit
        self._costs = costs
        self._weights = (
            AdaptiveRouterWeights()
            if quality is None
            else AdaptiveRouterWeights(quality=quality, cost=1.0 - quality)
        )
        self._random = random.Random(seed)
        undeclared = AdaptiveRouterPreferences(quality_tier=2, strengths=[])
        self._cells: dict[Any, dict[str, Any]] = {
            kind: {model: bandit.initial_cell(undeclared, kind) for model in costs}
            for kind in RequestType
        }

    def pick(self, kind: Any) -> str:
        """Pick the model for a prompt of that request type."""
        chosen: str = self._bandit.pick_best(
            self._cells[kind],
            self._costs,
            quality_weight=self._weights.quality,
            cost_weight=self._weights.cost,
            rng=self._random,
        )
        return chosen

    def learn(self, kind: Any, model: str, label: float) -> None:
        """Learn a verdict in [0, 1] on an answer of ``model``."""
        cells = self._cells[kind]
        cells[model] = self._bandit.apply_delta(cells[model], label, 1.0 - label)


def request_type(prompt: str) -> Any:
    """Return LiteLLM's request type of a prompt."""
    return _classifier()(prompt)


@cache
def _classifier() -> Any:
    """Import the classifier on first use: it takes seconds, since it imports all of LiteLLM, which
    would also download its price list, not needed here."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm.router_strategy.adaptive_router.classifier import classify_prompt

    return classify_prompt


def run(
    recording: Recording,
    labels: Matrix,
    kinds: list[Any],
    delay: int,
    seed: int,
    quality: float | None = None,
) -> Outcome:
    """Run one pass in the recording's order; ``kinds`` holds the request type of each distinct
    prompt.

    The price of each model for the bandit is its mean recorded cost.
    """
    models = recording.models
    costs = dict(zip(models, recording.cost.mean(axis=0).tolist(), strict=True))
    bandit = LiteLLMBandit(costs, seed, quality)
    late: Late[tuple[Any, str, float]] = Late(delay)
    served = np.zeros(len(recording), dtype=np.intp)
    for request, prompt in enumerate(recording.prompt.tolist()):
        for arrived in late.due(request):
            bandit.learn(*arrived)
        chosen = bandit.pick(kinds[prompt])
        model = models.index(chosen)
        served[request] = model
        if not math.isnan(label := float(labels[request, model])):
            late.add(request, (kinds[prompt], chosen, label))
    return Outcome.of_served(served, recording.satisfied, recording.cost)
