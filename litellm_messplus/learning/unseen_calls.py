"""Do calls that no user sees get labels? A check or a judge gives them some, or feedback that names
the call. Where nobody labels them they teach nothing and are not worth their price.

A label comes some requests after its call. So a few calls are taken to be waiting for theirs, and
do not count as unlabelled: ``FEW`` at first, and more as requests go by, for labels may come late,
or to a part of the requests only. Counts fade with the requests, so that a judge that is switched
on later is found out.
"""

import math
from dataclasses import dataclass

MEMORY = 5000.0
"""Requests over which all is counted. Where nobody labels them, some six calls in a thousand
requests are made all the same, to see whether that is still so."""
FEW = 5.0
"""Calls that may be without a label before a zoo that has never seen one makes no more."""
PATIENCE = 0.4
"""By how many times the root of the requests those grow: after 1000 requests they are 13."""


@dataclass(slots=True)
class UnseenCalls:
    """How many were made lately, how many of those have a label, and in how many ``requests``."""

    made: float = 0.0
    labelled: float = 0.0
    requests: float = 0.0

    @property
    def labelled_share(self) -> float:
        """Of the calls that are not waiting for their label any more; 1 while all may be."""
        waiting = max(FEW, PATIENCE * math.sqrt(self.requests))
        due = self.made - waiting
        return 1.0 if due <= self.labelled else self.labelled / due

    def decided(self, unseen: int) -> None:
        """A request went out, with so many calls beside the served one."""
        keep = math.exp(-1.0 / MEMORY)
        self.made = self.made * keep + unseen
        self.labelled *= keep
        self.requests = self.requests * keep + 1.0

    def answered(self) -> None:
        """The first verdict on one of them."""
        self.labelled += 1.0
