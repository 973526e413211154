"""Features as the heads of `adaptive` take them: of unit length, and not too many.

Unit length, so that a head's prior weighs the same under every encoder. Not too many, because a
label takes the square of their number, in the event loop and in every snapshot. Wider
features go through random signs, which keep the cosine of any two prompts to within a standard
deviation of 1 / sqrt(256) = 0.06, whatever the encoder (Johnson and Lindenstrauss 1984; with signs:
Achlioptas, "Database-friendly random projections", 2003).
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Features

WIDEST = 256
SEED = 20250527

Vector = NDArray[np.float64]


class Projection:
    """From ``dimension`` features to ``width`` ones of length 1, or all zero; read-only.

    The last row is kept: one prompt is asked for by several heads, at the decision and again when
    its call has ended.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.width = min(dimension, WIDEST)
        self._signs = _signs(self.width, dimension) if dimension > WIDEST else None
        self._last: tuple[Features | None, Features] = None, np.zeros(self.width, np.float32)

    def __call__(self, features: Features) -> Features:
        """Shape (width,), float32 as the heads are.

        Raises ValueError for anything but ``dimension`` finite numbers.
        """
        last, row = self._last
        if features is last:
            return row
        row = self._row(features).astype(np.float32)
        row.flags.writeable = False
        if not features.flags.writeable:  # else the same array may hold another prompt next
            self._last = features, row
        return row

    def _row(self, features: Features) -> Vector:
        if features.shape != (self.dimension,):
            raise ValueError(
                f"features of shape {features.shape}, not of dimension {self.dimension}"
            )
        row = _unit(features.astype(np.float64))
        return row if self._signs is None else _unit(self._signs @ row)


@cache
def projection(dimension: int) -> Projection:
    """The one of that dimension, which all heads share."""
    return Projection(dimension)


def _unit(row: Vector) -> Vector:
    square = float(row @ row)  # float32 features cannot overflow it
    if not math.isfinite(square):
        raise ValueError("features that are not all finite")
    return row / math.sqrt(square) if square > 0.0 else row


def _signs(rows: int, columns: int) -> Vector:
    """From the generator's raw bits, which numpy promises never to change."""
    words = np.random.PCG64(SEED).random_raw(-(-rows * columns // 64)).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8))[: rows * columns]
    return np.where(bits.reshape(rows, columns) == 1, 1.0, -1.0)
