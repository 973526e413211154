"""An encoder for tests: features from a hash of the text."""

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import shake_128

import numpy as np

from litellm_messplus.core.encoder import Conversation, FeatureRows


@dataclass(eq=False, repr=False)
class FakeEncoder:
    """Meaningless numbers in [-1, 1), which are the same everywhere for the same text.

    ``delay_seconds`` is slept in every call of `encode`; a ``failure`` is raised there instead of
    an answer, until it is set to None. ``batches`` lists the number of texts of each call.
    """

    dimension: int = 8
    _: KW_ONLY
    is_fast: bool = True
    delay_seconds: float = 0.0
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.name = f"fake-{self.dimension}"
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
