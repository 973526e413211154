"""The prompt as the input of the heads: the encoder's features, and its surface."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.head import Vector
from litellm_messplus.core.surface import WIDTH, Surface, ramps
from litellm_messplus.runtime.stand_ins import once

# Features as the heads of `adaptive` take them: of unit length, and limited in number.
#
# Unit length, so that a head's prior has the same weight under every encoder. Limited, because a
# label takes time in the square of their number in the event loop, and so does every snapshot in
# size. Wider features are projected with random signs, which keep the cosine of any two prompts to
# within a standard deviation of 1 / sqrt(256) = 0.06, whatever the encoder (Johnson and
# Lindenstrauss 1984; with signs: Achlioptas, "Database-friendly random projections", 2003).

WIDEST = 256
SEED = 20250527

Projected = NDArray[np.float64]


class Projection:
    """A projection from ``dimension`` features to ``width`` ones of length 1, or all zero;
    read-only.

    The last row is kept: several heads need that of one prompt, at the decision and again when
    its call has ended.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.width = min(dimension, WIDEST)
        self._signs = _signs(self.width, dimension) if dimension > WIDEST else None
        self._last: tuple[Features | None, Features] = None, np.zeros(self.width, np.float32)

    def __call__(self, features: Features) -> Features:
        """Project to shape (width,), in float32 as the heads use.

        Raises ValueError for anything but ``dimension`` finite numbers.
        """
        last, row = self._last
        if features is last:
            return row
        row = self._row(features).astype(np.float32)
        row.flags.writeable = False
        if not features.flags.writeable:  # else the array may be reused for another prompt
            self._last = features, row
        return row

    def _row(self, features: Features) -> Projected:
        if features.shape != (self.dimension,):
            raise ValueError(
                f"features of shape {features.shape}, not of dimension {self.dimension}"
            )
        row = _unit(features.astype(np.float64))
        return row if self._signs is None else _unit(self._signs @ row)


@cache
def projection(dimension: int) -> Projection:
    """Return the projection of that dimension, which all heads share."""
    return Projection(dimension)


def _unit(row: Projected) -> Projected:
    square = float(row @ row)  # float32 features cannot overflow it
    if not math.isfinite(square):
        raise ValueError("features that are not all finite")
    return row / math.sqrt(square) if square > 0.0 else row


def _signs(rows: int, columns: int) -> Projected:
    """Draw signs from the generator's raw bits, which numpy guarantees never to change."""
    words = np.random.PCG64(SEED).random_raw(-(-rows * columns // 64)).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8))[: rows * columns]
    return np.where(bits.reshape(rows, columns) == 1, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Prompt:
    """The prompt as the heads see it. ``features`` is None if they came too late, ``surface`` if it
    was not logged, or under another version."""

    features: Features | None
    surface: Surface | None = None

    @property
    def is_read(self) -> bool:
        """Whether any of it is known."""
        return self.features is not None or self.surface is not None

    @once
    def ramps(self) -> Vector | None:
        """The ramps, of shape (WIDTH,). Raises ValueError for an invalid surface."""
        return None if self.surface is None else ramps(self.surface)

    def words(self, dimension: int) -> Vector | None:
        """Return the encoder's features of unit length, shape (at most 256,).

        Raises ValueError for anything but ``dimension`` finite numbers.
        """
        return None if self.features is None else projection(dimension)(self.features)


class Rows(NamedTuple):
    """The difference of a prompt from the average one: ``surface`` of shape (WIDTH,), ``words`` of
    shape (at most 256,); zero where the prompt's part is missing."""

    surface: Vector
    words: Vector


class Combined:
    """Several models' linear heads as one, over prompts as they are: ``weights`` of shape (models,
    WIDTH) and ``words`` of shape (at most 256,), which all models share. The output for the
    ``average`` prompt is subtracted, instead of the average from every prompt."""

    def __init__(self, weights: Vector, words: Vector, average: "Average") -> None:
        self.weights = weights
        self.words = words
        self._dimension = average.dimension
        self._at_average: Vector = np.dot(weights, average.surface)
        self._words_at_average = np.dot(words, average.words)

    def of(self, prompt: Prompt) -> Vector:
        """Compute the output of each model's heads for one prompt, shape (models,); missing parts
        give zero."""
        surface, words = prompt.ramps, prompt.words(self._dimension)
        found = np.zeros(len(self.weights), np.float32)
        if surface is not None:
            found += np.dot(self.weights, surface) - self._at_average
        if words is not None:
            found += np.dot(self.words, words) - self._words_at_average
        return found

    def of_many(self, surface: Vector, words: Vector) -> Vector:
        """Compute the same for several prompts, (prompts, WIDTH) and (prompts, words), both
        differences from the average: shape (prompts, models)."""
        found: Vector = surface @ self.weights.T + (words @ self.words)[:, None]
        return found


class Average:
    """The average prompt so far, from which every other is measured: on the average prompt all
    heads give zero, so that what is common to all prompts stays in the running means."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.surface = np.zeros(WIDTH, np.float32)
        self.words = np.zeros(projection(dimension).width, np.float32)
        self.counts = np.zeros(2, np.int64)

    def difference(self, prompt: Prompt) -> Rows:
        """Return the difference of a prompt from the average."""
        surface, words = prompt.ramps, prompt.words(self.dimension)
        return Rows(
            np.zeros_like(self.surface) if surface is None else surface - self.surface,
            np.zeros_like(self.words) if words is None else words - self.words,
        )

    def count(self, prompt: Prompt) -> None:
        """Count one more prompt in the average."""
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
