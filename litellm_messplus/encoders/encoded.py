"""What an encoder gave, and what that took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litellm_messplus.prediction.encoder import Encoder, FeatureRows


@dataclass(frozen=True, slots=True)
class Encoded:
    """``rows`` of shape (texts, dimension), and the ``joules`` above idle that they took together;
    None where that is not measured, which is not zero."""

    rows: FeatureRows
    joules: float | None = None


Encode = Callable[[Sequence[str]], Encoded]


def unmeasured(encoder: Encoder) -> Encode:
    """Its `encode`, of which nobody knows what it takes."""
    return lambda texts: Encoded(encoder.encode(texts))
