"""The account of one service level under `adaptive`: what is owed, and what is still pending.

The promise is about the running rate, so what counts is the accumulated shortfall. Unlike the
paper's queue it may go below zero: surplus is credit, bounded so that a good morning does not pay
for a bad week (reflected at zero, as published, the cost is 0.498 instead of 0.429 MJ).

A served request that nobody has judged yet counts with its prediction, weighed by how often users
answer at all, and for the next ``PENDING`` requests only: then its label is not expected any more.
One that comes after all counts as any other, in the share of answers too.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CREDIT = 30.0
"""Satisfied requests that can be saved up."""
PENDING = 256
"""Requests after which a label is not expected any more."""
ANSWER_MEMORY = 500
"""Requests over which the share of answered ones is taken."""


class Pending(NamedTuple):
    """A request that nobody has judged yet: its number, and alpha minus its prediction."""

    number: int
    shortfall: float


@dataclass(slots=True)
class Account:
    """``shortfall`` is over judged requests; ``pending`` holds the expected one of each of the
    others, and ``expected`` their sum."""

    shortfall: float = 0.0
    answered_share: float = 1.0
    seen: int = 0
    answered_requests: int = 0
    requests: int = 0
    expected: float = 0.0
    pending: OrderedDict[str, Pending] = field(default_factory=OrderedDict)

    @property
    def queue(self) -> float:
        """What is owed in expectation, in requests."""
        return self.shortfall + self.answered_share * self.expected

    def decided(self, request_id: str, expected_shortfall: float) -> None:
        """A request went out."""
        self.requests += 1
        self.pending[request_id] = Pending(self.requests, expected_shortfall)
        self.expected += expected_shortfall
        while next(iter(self.pending.values())).number <= self.requests - PENDING:
            self._close(next(iter(self.pending)))
            self._expect(answer=0.0)

    def answered(self, request_id: str, shortfall: float) -> None:
        """The first verdict on a request: ``shortfall`` is alpha minus the satisfaction."""
        self.answered_requests += 1
        if request_id in self.pending:
            self._close(request_id)
            self._expect(answer=1.0)
        elif self.seen > 0:  # given up as unanswered
            late = self.answered_share + 1.0 / min(self.seen, ANSWER_MEMORY)
            self.answered_share = min(late, 1.0)
        self._count(shortfall)

    def revised(self, difference: float) -> None:
        """A later verdict: ``difference`` is its shortfall minus that of the one it replaces."""
        self._count(difference)

    def plain(self) -> dict[str, Any]:
        return {
            "shortfall": self.shortfall,
            "answered_share": self.answered_share,
            "seen": self.seen,
            "answered_requests": self.answered_requests,
            "requests": self.requests,
            "expected": self.expected,
            "pending": [[name, *pending] for name, pending in self.pending.items()],
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Account":
        """The account that ``plain`` describes."""
        pending = OrderedDict((name, Pending(*rest)) for name, *rest in plain["pending"])
        return cls(**{**plain, "pending": pending})

    def _close(self, request_id: str) -> None:
        closed = self.pending.pop(request_id)
        # A sum that only moves keeps what rounding left in it: nothing, once nothing is pending.
        self.expected = self.expected - closed.shortfall if self.pending else 0.0

    def _count(self, shortfall: float) -> None:
        self.shortfall = max(self.shortfall + shortfall, -CREDIT)

    def _expect(self, answer: float) -> None:
        self.seen += 1
        self.answered_share += (answer - self.answered_share) / min(self.seen, ANSWER_MEMORY)
