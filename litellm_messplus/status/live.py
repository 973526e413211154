"""What the running proxy knows beyond the log."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveLevel:
    """A service level as its engine sees it now.

    ``queue`` is in requests; ``price`` in the zoo's unit for one more satisfied request. With
    ``price`` or ``is_within_reach`` None, the newest decisions in the log are asked. With
    ``alpha``, the level is shown before its first request. ``least_agreement`` is the kappa below
    which the zoo's judge stops counting.
    """

    queue: float
    price: float | None = None
    is_within_reach: bool | None = None
    alpha: float | None = None
    cost_unit: str | None = None
    least_agreement: float | None = None


LiveLevels = Mapping[tuple[str, str], LiveLevel]
"""By zoo and service level."""
