"""The encoder protocol: what turns a conversation into features, in two steps."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.conversation import Conversation

Features = NDArray[np.float32]
"""A vector of shape (dimension,); float32, because that is what the log stores."""

FeatureRows = NDArray[np.float32]
"""Vectors of several texts, shape (texts, dimension)."""


class Encoder(Protocol):
    """Deterministic: the log keeps the features, and nothing that they came from.

    ``name`` (at most 255 characters) changes whenever the meaning of the features does: what was
    logged under another name is not learned from. ``is_fast`` says that encoding takes well under
    a millisecond, so that the proxy does it in its event loop; any other encoder runs in a process
    of its own, several prompts at once, one batch after the other.
    """

    name: str
    dimension: int
    is_fast: bool

    def read(self, conversation: Conversation) -> str:
        """The text that is encoded: shortened to what the encoder takes in, the last turn whole
        wherever it fits. Cheap; equal texts have equal features."""
        ...

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Features of any texts, empty, huge or garbled ones too; a text's features do not depend
        on the others in the batch (beyond float32 rounding)."""
        ...
