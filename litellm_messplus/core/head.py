"""The head protocol: from features to a probability for each candidate, learned online; linear
heads, and the belief about the weights of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.encoder import Features

# A label for learning.


@dataclass(frozen=True, slots=True)
class Label:
    """A satisfaction from 0 to 1, and its weight."""

    value: float
    weight: float = 1.0

    def residual(self, rate: float) -> float:
        """Return its weighted distance from a rate."""
        return self.weight * (self.value - rate)


Arrays = dict[str, NDArray[Any]]


class Head(Protocol):
    """A deterministic head: the same labels in the same order give the same head, bit for bit.

    A prompt's labels come together, or one by one; a missing label leaves that candidate's own
    state unchanged. Features of another shape than (dimension,), or that are not all finite, raise
    ValueError, and a candidate without a head raises KeyError; either changes nothing.
    """

    candidates: tuple[str, ...]
    dimension: int

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        """Predict the probability of satisfaction of each named candidate, in the order given."""

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        """Learn a prompt's labels in [0, 1], by candidate; half the weight moves half as far."""

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before, as well as possible in hindsight."""

    def add(self, candidate: str) -> None:
        """Add an unknown candidate after the others, which stay as they are."""

    def remove(self, candidate: str) -> None:
        """Forget a candidate; the others stay as they are."""

    def own(self, candidate: str) -> Arrays:
        """Return the state that no other candidate's label may change. Layers shared by all are not
        part of it."""

    def arrays(self) -> Arrays:
        """Return everything learned; the arrays may share memory with the head."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly where a head of the same candidates and dimension was that gave these.

        Raises KeyError for a missing array, ValueError for one of another shape.
        """


def checked(features: Features, dimension: int) -> Features:
    """Return the features themselves if they are ``dimension`` finite numbers; else raise
    ValueError."""
    if features.shape != (dimension,):
        raise ValueError(f"features of shape {features.shape}, not of dimension {dimension}")
    if not np.isfinite(features).all():
        raise ValueError("features that are not all finite")
    return features


def fill(own: Arrays, given: Mapping[str, NDArray[Any]]) -> None:
    """Copy the given arrays into those of the same names in ``own``: all of them, or none.

    Raises KeyError for a missing one, ValueError for one of another shape or type.
    """
    for name, array in own.items():
        found = given[name]
        if (found.shape, found.dtype) != (array.shape, array.dtype):
            raise ValueError(f"{name} of shape {found.shape}, not {array.shape} ({array.dtype})")
    for name, array in own.items():
        array[...] = given[name]


# One logistic head per candidate, trained by online SGD (paper, Eq. 4 and Algorithm 1).

Weights = NDArray[np.float64]


class LinearHeads:
    """Heads z of shape (M, dimension + 1), the last column the bias.

    A step on a label is SGD with momentum on the paper's regularised cross-entropy: the loss is
    the mean over the M candidates, hence the factor 1/M; weight decay is its mu. The heads share
    no weights, so a missing label leaves that candidate's head alone. All start at zero, where
    every prediction is one half.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        dimension: int,
        *,
        learning_rate: float,
        momentum: float,
        weight_decay: float,
    ) -> None:
        self.candidates = tuple(candidates)
        self.dimension = dimension
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._row = {name: row for row, name in enumerate(self.candidates)}
        self.weights: Weights = np.zeros((len(self.candidates), dimension + 1))
        self.velocity: Weights = np.zeros_like(self.weights)

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        """Predict the probability of satisfaction of each named candidate, in the order given.

        Raises KeyError for a candidate without a head, ValueError for features that are not
        ``dimension`` finite numbers.
        """
        rows = [self._row[name] for name in candidates]
        given = checked(features, self.dimension)
        logits = (self.weights[:, :-1] @ given + self.weights[:, -1])[rows]
        probabilities: list[float] = _sigmoid(logits).tolist()
        return probabilities

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        """Take one SGD step of each labelled candidate's head. Raises as ``predict`` does."""
        predictions = self.predict(features, list(labels))
        for (candidate, label), predicted in zip(labels.items(), predictions, strict=True):
            row = self._row[candidate]
            gradient = self._cross_entropy_gradient(features, -label.residual(predicted))
            self._step(row, gradient + self._weight_decay * self.weights[row])

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before.

        The gradient is linear in the label, so this step is the difference that the other label
        would have made, to first order in the learning rate.
        """
        (predicted,) = self.predict(features, [candidate])
        error = previous.residual(predicted) - label.residual(predicted)
        self._step(self._row[candidate], self._cross_entropy_gradient(features, error))

    def add(self, candidate: str) -> None:
        """Add a candidate whose head starts at zero, after the others."""
        row = np.zeros((1, self.dimension + 1))
        self.weights = np.vstack([self.weights, row])
        self.velocity = np.vstack([self.velocity, row])
        self._name((*self.candidates, candidate))

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those after it move up."""
        self.weights = np.delete(self.weights, self._row[candidate], axis=0)
        self.velocity = np.delete(self.velocity, self._row[candidate], axis=0)
        self._name(tuple(name for name in self.candidates if name != candidate))

    def own(self, candidate: str) -> Arrays:
        """Return the candidate's row of ``arrays``."""
        row = self._row[candidate]
        return {name: array[row] for name, array in self.arrays().items()}

    def arrays(self) -> Arrays:
        """Return weights and velocity, without copying."""
        return {"weights": self.weights, "velocity": self.velocity}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load the ``arrays`` of such heads. Raises KeyError or ValueError if they do not
        fit."""
        fill(self.arrays(), arrays)

    def _name(self, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        self._row = {name: row for row, name in enumerate(candidates)}

    def _cross_entropy_gradient(self, features: Features, error: float) -> Weights:
        return np.append(features, 1.0) * (error / len(self.candidates))

    def _step(self, row: int, gradient: Weights) -> None:
        self.velocity[row] = self._momentum * self.velocity[row] + gradient
        self.weights[row] -= self._learning_rate * self.velocity[row]


def _sigmoid(logits: Weights) -> Weights:
    clipped = np.clip(logits, -35.0, 35.0)
    return 1.0 / (1.0 + np.exp(-clipped))


# The belief about the weights of a linear head: a normal law that every observation sharpens.
#
# A head of logistic regression is learned by one step of the extended Kalman filter per label:
# exact for a linear target, and 0.02 ms at 250 weights, so that it needs no batch and no solver.
# Heads that explain one target together are updated together, as if independent of each other (a
# mean field): each takes its own share of the surprise, by its own uncertainty.
#
# Numbers are float32: half the memory and half the snapshot; the smallest variance that matters
# is a thousandth of the prior, five orders of magnitude above the rounding.

Vector = NDArray[np.float32]

BLOCK = 8
"""Observations whose squares are subtracted from a covariance together."""


class Belief:
    """A normal belief about weights: ``mean`` of shape (width,); ``variance`` is that of every
    weight before the first observation.

    Each observation subtracts one square from the covariance. ``BLOCK`` of them are collected and
    subtracted together, in a quarter of the time: until then ``covariance`` is too large by the
    squares of the rows in ``waiting``.
    """

    def __init__(self, width: int, variance: float) -> None:
        self.mean: Vector = np.zeros(width, np.float32)
        self._variance = np.float32(variance)
        self.waiting: Vector = np.zeros((BLOCK, width), np.float32)
        self.count = 0

    @cached_property
    def covariance(self) -> Vector:
        """The covariance, made when first needed: a worker that only predicts has no use for its
        megabyte."""
        return np.eye(len(self.mean), dtype=np.float32) * self._variance

    def spread(self, row: Vector) -> Vector:
        """Multiply the covariance by ``row``: the covariance of each weight with that sum."""
        missing = np.dot(np.dot(self.waiting, row), self.waiting)
        spread: Vector = np.dot(self.covariance, row) - missing
        return spread

    def sharpen(self, row: Vector) -> None:
        """Subtract the square of ``row`` from the covariance."""
        self.waiting[self.count] = row
        self.count += 1
        if self.count == BLOCK:
            squares: Vector = self.waiting.T @ self.waiting
            self.covariance -= squares
            self.waiting[:] = 0.0
            self.count = 0

    def doubt(self) -> None:
        """Restore the covariance from before the first observation; the mean stays."""
        vars(self).pop("covariance", None)  # it is made anew when it is needed
        self.waiting[:] = 0.0
        self.count = 0

    def numbers(self) -> Vector:
        """Return the whole belief for a snapshot; of the covariance, the upper half."""
        upper = self.covariance[_upper(len(self.mean))]
        return np.concatenate(([self.count], self.mean, self.waiting.ravel(), upper), dtype="<f4")

    def load(self, numbers: Vector) -> None:
        """Load the ``numbers`` of a belief of the same width, bit for bit.

        Raises ValueError for another number of them.
        """
        width = len(self.mean)
        places = np.cumsum([1, width, BLOCK * width])
        if numbers.shape != (places[-1] + width * (width + 1) // 2,):
            raise ValueError(f"a belief of {numbers.shape[0]} numbers, not of width {width}")
        count, self.mean, waiting, upper = np.split(numbers.astype(np.float32), places)
        self.count, self.waiting = int(count[0]), waiting.reshape(BLOCK, width).copy()
        self.covariance[_upper(width)] = upper
        self.covariance.T[_upper(width)] = upper


@cache
def _upper(width: int) -> NDArray[np.bool_]:
    """Mark the upper half of a covariance, its diagonal included."""
    return np.triu(np.ones((width, width), np.bool_))


@dataclass(frozen=True, slots=True)
class Observed:
    """A belief, and the features by which it explains an observation."""

    belief: Belief
    row: Vector


def observe(parts: Sequence[Observed], residual: float, information: float) -> float:
    """Learn from one observation of the sum of ``parts``; returns its expected variance.

    ``residual`` is weight * (observed - expected), in the units of the observation, and
    ``information`` the observation's information on the sum, weight / variance: for a label of
    probability p, weight * p (1 - p).
    """
    spreads = [part.belief.spread(part.row) for part in parts]
    variance = sum(
        max(float(part.row @ spread), 0.0) for part, spread in zip(parts, spreads, strict=True)
    )
    total = variance + 1.0 / information
    step = np.float32(residual / information / total)
    scale = np.float32(total**-0.5)
    for part, spread in zip(parts, spreads, strict=True):
        part.belief.mean += spread * step
        part.belief.sharpen(spread * scale)
    return variance


def correct(parts: Sequence[Observed], difference: float) -> None:
    """Replace an observation learned before; ``difference`` is that of the residuals. Exact for a
    linear target, whatever was learned in between."""
    for part in parts:
        part.belief.mean += part.belief.spread(part.row) * np.float32(difference)
