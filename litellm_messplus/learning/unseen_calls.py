"""Do calls that no user sees get labels? Only a check or a judge gives them any.

Where nobody labels them they teach nothing and are not worth their price. Both counts fade with the
requests, so that a judge that is switched on later is found out.
"""

import math
from dataclasses import dataclass

MEMORY = 5000.0
"""Requests over which both are counted. Where nobody labels them, some six calls in a thousand
requests are made all the same, to see whether that is still so."""
TRUST = 5.0
"""Labelled calls that are assumed before the first: how long to wait for a label that is late."""


@dataclass(slots=True)
class UnseenCalls:
    """How many were made lately, and how many of those have a label."""

    made: float = 0.0
    labelled: float = 0.0

    @property
    def labelled_share(self) -> float:
        return min((self.labelled + TRUST) / (self.made + TRUST), 1.0)

    def decided(self, unseen: int) -> None:
        """A request went out, with so many calls beside the served one."""
        keep = math.exp(-1.0 / MEMORY)
        self.made = self.made * keep + unseen
        self.labelled *= keep

    def answered(self) -> None:
        """The first verdict on one of them."""
        self.labelled += 1.0
