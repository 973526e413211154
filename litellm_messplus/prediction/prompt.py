"""A prompt as the heads take it: what the encoder made of it, and what is seen of it at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.belief import Vector
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.projection import projection
from litellm_messplus.prediction.surface import WIDTH, Surface, ramps


@dataclass(frozen=True, eq=False)
class Prompt:
    """``features`` are None where they came too late, ``surface`` where it was not logged, or under
    another version."""

    features: Features | None
    surface: Surface | None = None

    @property
    def is_read(self) -> bool:
        """Whether anything is known of it."""
        return self.features is not None or self.surface is not None

    @cached_property
    def ramps(self) -> Vector | None:
        """Shape (WIDTH,). Raises ValueError for a surface that is none."""
        return None if self.surface is None else ramps(self.surface)

    def words(self, dimension: int) -> Vector | None:
        """The encoder's features of unit length, shape (at most 256,).

        Raises ValueError for anything but ``dimension`` finite numbers.
        """
        return None if self.features is None else projection(dimension)(self.features)


class Rows(NamedTuple):
    """By how much a prompt differs from the average one: ``surface`` of shape (WIDTH,), ``words``
    of shape (at most 256,); zero where the prompt does not tell."""

    surface: Vector
    words: Vector


class Combined:
    """Several models' linear heads as one, over prompts as they are: ``weights`` of shape (models,
    WIDTH) and ``words`` of shape (at most 256,), which all models share. What they give of the
    ``average`` prompt is taken off, not the average off every prompt."""

    def __init__(self, weights: Vector, words: Vector, average: "Average") -> None:
        self.weights = weights
        self.words = words
        self._dimension = average.dimension
        self._at_average: Vector = np.dot(weights, average.surface)
        self._words_at_average = np.dot(words, average.words)

    def of(self, prompt: Prompt) -> Vector:
        """Of each model for one prompt, shape (models,); what it does not tell gives zero."""
        surface, words = prompt.ramps, prompt.words(self._dimension)
        found = np.zeros(len(self.weights), np.float32)
        if surface is not None:
            found += np.dot(self.weights, surface) - self._at_average
        if words is not None:
            found += np.dot(self.words, words) - self._words_at_average
        return found

    def of_many(self, surface: Vector, words: Vector) -> Vector:
        """The same of several prompts, (prompts, WIDTH) and (prompts, words), both differences from
        the average: shape (prompts, models)."""
        found: Vector = surface @ self.weights.T + (words @ self.words)[:, None]
        return found


class Average:
    """The average prompt so far, from which every other is measured: on the average prompt all
    heads say zero, so that what is common to all prompts stays in the running means."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.surface = np.zeros(WIDTH, np.float32)
        self.words = np.zeros(projection(dimension).width, np.float32)
        self.counts = np.zeros(2, np.int64)

    def difference(self, prompt: Prompt) -> Rows:
        """Of a prompt from the average."""
        surface, words = prompt.ramps, prompt.words(self.dimension)
        return Rows(
            np.zeros_like(self.surface) if surface is None else surface - self.surface,
            np.zeros_like(self.words) if words is None else words - self.words,
        )

    def count(self, prompt: Prompt) -> None:
        """Take one more prompt into the average."""
        surface, words = prompt.ramps, prompt.words(self.dimension)
        if surface is not None:
            self.counts[0] += 1
            self.surface += (surface - self.surface) / np.float32(self.counts[0])
        if words is not None:
            self.counts[1] += 1
            self.words += (words - self.words) / np.float32(self.counts[1])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"surface": self.surface, "words": self.words, "counts": self.counts}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.surface, self.words = arrays["surface"].copy(), arrays["words"].copy()
        self.counts = arrays["counts"].copy()
