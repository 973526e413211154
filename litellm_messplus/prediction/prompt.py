"""A prompt as the heads take it: what the encoder made of it, and what is seen of it at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    _words: Vector | None = field(default=None, init=False, repr=False)

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
        if self.features is None:
            return None
        project = projection(dimension)
        if self._words is None or len(self._words) != project.width:
            words = project(self.features).astype(np.float32)
            object.__setattr__(self, "_words", words)  # asked for by every head
            return words
        return self._words


class Rows(NamedTuple):
    """By how much a prompt differs from the average one: ``surface`` of shape (WIDTH,), ``words``
    of shape (at most 256,); zero where the prompt does not tell."""

    surface: Vector
    words: Vector


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
