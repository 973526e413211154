"""The encoder protocol: what turns a prompt into features."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]
"""A vector of shape (dimension,); float32, because that is what the log stores."""


class Encoder(Protocol):
    """Turns the text of a prompt into a vector; deterministic, for the log keeps only the vector.

    ``name`` changes whenever the meaning of the features does: what was logged under another name
    is not learned from.
    """

    name: str
    dimension: int

    def encode(self, text: str) -> Features:
        """Features of any text: empty, huge or garbled ones too."""
        ...
