"""What the labels say of the candidates: all that `adaptive` knows beside the request itself."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Of each healthy candidate, in the order of the situation's estimates.

    ``rate`` is the mean satisfaction, ``deviation`` its standard deviation, and ``optimism`` how
    many deviations may be added to it. ``is_blank`` before the first label. ``unseen_labelled`` is
    the share of the calls made beside a served one that got a label lately.
    """

    rate: Sequence[float]
    deviation: Sequence[float]
    optimism: Sequence[float]
    is_blank: bool
    unseen_labelled: float = 1.0
