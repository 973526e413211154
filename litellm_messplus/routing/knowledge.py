"""What the labels say of the candidates: all that `adaptive` knows beside the request itself."""

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_LABELLED = 0.1
"""Share of the unseen calls that must have got a label lately, or none is made."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Of each healthy candidate, in the order of the situation's estimates.

    ``rate`` is the mean satisfaction, ``deviation`` its standard deviation, and ``optimism`` how
    many deviations may be added to it. ``is_blank`` before the first label. ``unseen_labelled`` is
    the share of the calls made beside a served one that got a label lately; ``evidence`` is by how
    many nats reading the prompts has predicted better than the means.
    """

    rate: Sequence[float]
    deviation: Sequence[float]
    optimism: Sequence[float]
    is_blank: bool
    unseen_labelled: float = 1.0
    evidence: float = 0.0
