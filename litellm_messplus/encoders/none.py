"""No encoder: the prompt is not read, and the running means are all that is predicted.

The opponent that every other encoder has to beat; see `messplus encoders`.
"""

from collections.abc import Sequence

import numpy as np

from litellm_messplus.prediction.conversation import Conversation
from litellm_messplus.prediction.encoder import FeatureRows


class NoEncoder:
    """``dimension`` 1, and the one feature is always zero: no head can learn anything from it."""

    name = "none"
    dimension = 1
    is_fast = True

    def read(self, conversation: Conversation) -> str:
        """Nothing."""
        return ""

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Zeros of shape (texts, 1)."""
        return np.zeros((len(texts), self.dimension), dtype=np.float32)
