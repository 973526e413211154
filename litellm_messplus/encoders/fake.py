"""An encoder for tests, of this project and of others: features from a hash of the text."""

import time
from collections.abc import Sequence
from hashlib import shake_128

import numpy as np

from litellm_messplus.prediction.encoder import Conversation, FeatureRows


class FakeEncoder:
    """Numbers in [-1, 1) that mean nothing, and are the same everywhere for the same text.

    ``delay_seconds`` is slept in every call of `encode`; a ``failure`` is raised there instead of
    an answer, until it is set to None. ``batches`` tells how many texts each call was given.
    """

    def __init__(
        self,
        dimension: int = 8,
        *,
        is_fast: bool = True,
        delay_seconds: float = 0.0,
        failure: Exception | None = None,
    ) -> None:
        self.name = f"fake-{dimension}"
        self.dimension = dimension
        self.is_fast = is_fast
        self.delay_seconds = delay_seconds
        self.failure = failure
        self.batches: list[int] = []

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Return features of shape (texts, dimension). Raises ``failure``."""
        self.batches.append(len(texts))
        time.sleep(self.delay_seconds)
        if self.failure is not None:
            raise self.failure
        digests = [self._digest(text) for text in texts]
        numbers = np.frombuffer(b"".join(digests), dtype="<u2").reshape(-1, self.dimension)
        return (numbers / 2**15 - 1.0).astype(np.float32)

    def _digest(self, text: str) -> bytes:
        return shake_128(text.encode("utf-8", "surrogatepass")).digest(2 * self.dimension)
