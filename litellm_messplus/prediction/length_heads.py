"""What the prompt tells of the length of each model's answer, and so of its cost and seconds.

Why it exists: where one request costs several times another, a satisfied request is bought
cheapest where the step to the better model is small. Every call shows a length, labelled or not, so
this is learned far sooner than satisfaction. Models differ: one writes three lines of working for a
sum, another the sum. So there is a head that all share, and one of each model's own.
Left out (10 seeds): tiny 0.60 instead of 0.53 times the hindsight mix.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.belief import Belief, Observed, Vector, observe
from litellm_messplus.prediction.prompt import Average, Combined, Prompt, Rows, projection
from litellm_messplus.prediction.surface import WIDTH

LARGEST = 2.0
"""Of the log-ratio to the model's mean, either way; of one answer's surprise too."""
SHARED, OWN, WORDS = 0.05, 0.02, 0.05
"""Prior variances of the weights, in nats squared."""
NOISE, LEAST_NOISE = 0.25, 0.01
"""Variance of the log of an answer's length that no prompt explains: at first, and at least."""
NOISE_SHARE = 0.02
"""Of one answer, in the running mean of that variance."""


class LengthHeads:
    """Tokens of an answer, as multiples of each model's running mean."""

    def __init__(self, models: int, dimension: int) -> None:
        self.average = Average(dimension)
        self.shared = Belief(WIDTH, SHARED)
        self.words = Belief(projection(dimension).width, WORDS)
        self.own = [Belief(WIDTH, OWN) for _ in range(models)]
        self.noise: NDArray[np.float64] = np.full(models, NOISE)
        self._combine()

    def multiples(self, prompt: Prompt) -> list[float]:
        """Predict each model's answer as a multiple of its answer to an average prompt."""
        return [_multiple(shift) for shift in self._combined.of(prompt).tolist()]

    def multiples_of_many(self, surface: Vector, words: Vector) -> NDArray[np.float64]:
        """Predict the same of several prompts, (prompts, WIDTH) and (prompts, words), neither
        measured from the average: shape (prompts, models)."""
        shifts = self._combined.of_many(surface - self.average.surface, words - self.average.words)
        multiples: NDArray[np.float64] = np.exp(
            np.clip(shifts, -LARGEST, LARGEST), dtype=np.float64
        )
        return multiples

    def learn(self, model: int, prompt: Prompt, multiple: float) -> None:
        """Learn from an answer that was so many times as long as its model's mean."""
        if multiple <= 0.0:
            return
        self.average.count(prompt)
        rows = self.average.difference(prompt)
        surprise = math.log(multiple) - self._shift(model, rows)
        surprise = min(max(surprise, -LARGEST), LARGEST)
        parts = [
            Observed(self.shared, rows.surface),
            Observed(self.words, rows.words),
            Observed(self.own[model], rows.surface),
        ]
        noise = float(self.noise[model])
        explained = observe(parts, surprise / noise, 1.0 / noise)
        noise += NOISE_SHARE * (max(surprise * surprise - explained, LEAST_NOISE) - noise)
        self.noise[model] = noise
        self._combine()

    def add(self) -> None:
        """Add a model of which nothing is known, behind the others."""
        self.own.append(Belief(WIDTH, OWN))
        self.noise = np.append(self.noise, NOISE)
        self._combine()

    def remove(self, model: int) -> None:
        """Forget a model; those behind it move up."""
        del self.own[model]
        self.noise = np.delete(self.noise, model)
        self._combine()

    def arrays(self) -> dict[str, NDArray[Any]]:
        beliefs = {f"length_{place}": each.numbers() for place, each in enumerate(self._beliefs())}
        average = {f"length_{name}": array for name, array in self.average.arrays().items()}
        return {**beliefs, **average, "length_noise": self.noise}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for place, belief in enumerate(self._beliefs()):
            belief.load(arrays[f"length_{place}"])
        self.average.load({name: arrays[f"length_{name}"] for name in self.average.arrays()})
        self.noise = arrays["length_noise"].copy()
        self._combine()

    def _beliefs(self) -> list[Belief]:
        return [self.shared, self.words, *self.own]

    def _combine(self) -> None:
        """Combine shared and own heads into one."""
        rows = [self.shared.mean + own.mean for own in self.own]
        weights: Vector = np.stack(rows) if rows else np.zeros((0, WIDTH), np.float32)
        self._combined = Combined(weights, self.words.mean.copy(), self.average)

    def _shift(self, model: int, rows: Rows) -> float:
        words = float(self.words.mean @ rows.words)
        return float(self._combined.weights[model] @ rows.surface) + words


def _multiple(shift: float) -> float:
    return math.exp(min(max(shift, -LARGEST), LARGEST))
