"""The recently judged prompts: those that a plan is made for, and that a rate is a mean over.

A model's rate refers to all prompts, while the heads give what one prompt adds in log-odds. The two
are reconciled here: each model gets an offset, so that its predictions, averaged over the recent
prompts, equal its rate. Without it a head with large slopes would predict a mean that was never
measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.prompt import Prompt, projection
from litellm_messplus.core.prompt_heads import PromptHeads
from litellm_messplus.core.surface import NUMBERS, WIDTH, ramps
from litellm_messplus.core.trust import log_odds, logistics

KEPT = 200
"""Number of prompts kept, the newest."""
EVERY = 8
"""Labels after which offsets and predictions are recomputed, in 0.5 ms for three models."""
STEPS = 3
"""Newton steps per update, from the last offset."""
FARTHEST = 6.0
"""Largest offset, in log-odds."""


class RecentPrompts:
    """A ring of the last ``KEPT`` judged prompts.

    ``satisfaction``, shape (prompts, models), holds their predictions as of the last increment of
    ``version``; ``hope``, shape (models,), what could be added to each model's rate then.
    """

    def __init__(self, models: int, dimension: int) -> None:
        self._dimension = dimension
        self.numbers = np.zeros((KEPT, len(NUMBERS)), np.float32)
        self.is_seen = np.zeros(KEPT, np.bool_)
        self.ramps = np.zeros((KEPT, WIDTH), np.float32)
        self.words = np.zeros((KEPT, projection(dimension).width), np.float32)
        self.requests: list[str] = []
        self.added = self.labels = self.version = 0
        self.offsets: NDArray[np.float64] = np.zeros(models)
        self.means: NDArray[np.float64] = np.zeros(models)
        self.satisfaction: NDArray[np.float64] = np.zeros((0, models))
        self.hope: NDArray[np.float64] = np.zeros(models)

    def __len__(self) -> int:
        return min(self.added, KEPT)

    def add(self, request_id: str, prompt: Prompt, heads: PromptHeads) -> None:
        """Add the prompt of a judged request, once, however many of its calls are judged. Missing
        parts are set to the average."""
        if request_id in self.requests:
            return
        place = self.added % KEPT
        surface, words = prompt.ramps, prompt.words(self._dimension)
        self.is_seen[place] = surface is not None
        self.numbers[place] = 0.0 if prompt.surface is None else prompt.surface
        self.ramps[place] = 0.0 if surface is None else surface
        self.words[place] = heads.average.words if words is None else words
        self.requests = [*self.requests, request_id][-KEPT:]
        self.added += 1

    def counted(self, heads: PromptHeads, rates: Sequence[float], hope: Sequence[float]) -> None:
        """Count a learned label, and recompute the predictions at every ``EVERY`` labels."""
        self.labels += 1
        if self.labels % EVERY == 0 and self.added:
            self._predict(heads, rates)
            self.hope = np.array(hope)
            self.version += 1

    def add_model(self, heads: PromptHeads, rates: Sequence[float], hope: Sequence[float]) -> None:
        """Add a model, and recompute all predictions."""
        self.offsets, self.means = np.append(self.offsets, 0.0), np.append(self.means, 0.0)
        self._models_changed(heads, rates, hope)

    def remove_model(
        self, model: int, heads: PromptHeads, rates: Sequence[float], hope: Sequence[float]
    ) -> None:
        """Forget a model, and recompute the others' predictions."""
        self.offsets, self.means = np.delete(self.offsets, model), np.delete(self.means, model)
        self._models_changed(heads, rates, hope)

    def _models_changed(
        self, heads: PromptHeads, rates: Sequence[float], hope: Sequence[float]
    ) -> None:
        self.hope = np.array(hope)
        self.satisfaction = np.zeros((0, len(rates)))
        if self.version > 0:
            self._predict(heads, rates)
            self.version += 1

    def _predict(self, heads: PromptHeads, rates: Sequence[float]) -> None:
        kept = len(self)
        surface = self.ramps[:kept] - heads.average.surface
        surface[~self.is_seen[:kept]] = 0.0
        words = self.words[:kept] - heads.average.words
        shifts = heads.combined.of_many(surface, words).astype(np.float64)
        self.means = shifts.mean(axis=0)
        shifts -= self.means
        base = np.array([log_odds(rate) for rate in rates])
        wanted = logistics(base)
        for _ in range(STEPS):
            guess = logistics(base + self.offsets + shifts)
            slope = np.maximum((guess * (1.0 - guess)).mean(axis=0), 1e-3)
            step = (guess.mean(axis=0) - wanted) / slope
            self.offsets = np.clip(self.offsets - step, -FARTHEST, FARTHEST)
        self.satisfaction = logistics(base + self.offsets + shifts)

    def plain(self) -> dict[str, Any]:
        """Return the part of a snapshot that is not in ``arrays``."""
        return {
            "requests": self.requests,
            "counts": [self.added, self.labels, self.version],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {f"recent_{name}": getattr(self, name) for name in _ARRAYS}

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.requests = list(plain["requests"])
        self.added, self.labels, self.version = plain["counts"]
        for name in _ARRAYS:
            setattr(self, name, arrays[f"recent_{name}"].copy())
        self.ramps[self.is_seen] = ramps(self.numbers[self.is_seen])


_ARRAYS = ("numbers", "is_seen", "words", "offsets", "means", "satisfaction", "hope")
