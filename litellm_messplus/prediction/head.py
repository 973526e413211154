"""The head protocol: from features to a probability for each candidate, learned online."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.label import Label

Arrays = dict[str, NDArray[Any]]


class Head(Protocol):
    """Deterministic: the same labels in the same order give the same head, bit for bit.

    A prompt's labels come together, or one by one; those of other candidates are missing, and leave
    what is theirs alone. Features of another shape than (dimension,), or that are not all finite,
    are a ValueError, and a candidate without a head is a KeyError; either changes nothing.
    `conformance.heads` checks all of this.
    """

    candidates: tuple[str, ...]
    dimension: int

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        """The probability of satisfaction of each named candidate, in the order given."""
        ...

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        """Take in a prompt's labels in [0, 1], by candidate; half the weight moves half as far."""
        ...

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before, as well as that can be done later."""
        ...

    def own(self, candidate: str) -> Arrays:
        """What no other candidate's label may change. Layers that all share are not part of it."""
        ...

    def arrays(self) -> Arrays:
        """Everything learned; they may share memory with the head."""
        ...

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on exactly where a head of the same candidates and dimension was, that gave these.

        Raises KeyError for an array that is missing, ValueError for one of another shape.
        """
        ...


def checked(features: Features, dimension: int) -> Features:
    """The features themselves, where they are ``dimension`` finite numbers; else ValueError."""
    if features.shape != (dimension,):
        raise ValueError(f"features of shape {features.shape}, not of dimension {dimension}")
    if not np.isfinite(features).all():
        raise ValueError("features that are not all finite")
    return features


def fill(own: Arrays, given: Mapping[str, NDArray[Any]]) -> None:
    """Copy the given arrays into one's own of the same names: all of them, or none.

    Raises KeyError for one that is missing, ValueError for one of another shape or type.
    """
    for name, array in own.items():
        found = given[name]
        if (found.shape, found.dtype) != (array.shape, array.dtype):
            raise ValueError(f"{name} of shape {found.shape}, not {array.shape} ({array.dtype})")
    for name, array in own.items():
        array[...] = given[name]
