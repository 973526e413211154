"""The account of one service level under `adaptive`: the shortfall owed and the pending requests,
with the effect of forced and failed requests."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litellm_messplus.core.head import Label
from litellm_messplus.core.held import free_aim
from litellm_messplus.core.verdict import Given

# Forced requests: their share of the judged ones, and their rate of satisfaction, from the log.
#
# A request is forced if the gates left one candidate. The share is of judged requests, because the
# promise is about those; a zoo whose forced requests are never judged has none to compensate.

MEMORY = 500
"""The number of judged requests averaged in the share, and of forced ones in the rate."""
PRIOR = 8.0
"""The weight, in forced verdicts, of the prior that forced requests are as good as expected."""


@dataclass(slots=True)
class ForcedRequests:
    """The forced requests of one service level. ``weight`` is that of the verdicts averaged in
    ``rate``."""

    share: float = 0.0
    rate: float = 0.0
    weight: float = 0.0

    def answered(
        self, verdict: Label, judged: int, *, is_forced: bool, counts: float = 1.0
    ) -> None:
        """Count the first verdict on a request, the ``judged``-th of its level, ``counts`` times;
        the weight of ``verdict`` includes that already."""
        part = min(counts / min(max(judged, 1), MEMORY), 1.0)
        self.share += (float(is_forced) - self.share) * part
        if is_forced:
            self.weight = min(self.weight + verdict.weight, MEMORY)
            self.rate += (verdict.value - self.rate) * verdict.weight / self.weight

    def revised(self, previous: Label, verdict: Label) -> None:
        """Replace the previous verdict on a forced request by a later one."""
        gained = verdict.weight * (verdict.value - self.rate)
        lost = previous.weight * (previous.value - self.rate)
        self.rate = min(max(self.rate + (gained - lost) / max(self.weight, 1.0), 0.0), 1.0)

    def expected(self, otherwise: float) -> float:
        """Return the expected satisfaction of a forced request; ``otherwise`` is its prior mean."""
        return (self.weight * self.rate + PRIOR * otherwise) / (self.weight + PRIOR)

    def free_aim(self, aim: float) -> float:
        """Return the aim of a level's free requests, so that all its requests together reach
        ``aim``."""
        return free_aim(aim, self.share, self.expected(aim))

    def plain(self) -> list[float]:
        return [self.share, self.rate, self.weight]

    @classmethod
    def of(cls, plain: Sequence[float]) -> "ForcedRequests":
        """Rebuild what ``plain`` gave."""
        return cls(*plain)


# By how much the predictions for the served answers exceed their labels.
#
# The plan trusts its predictions, and each request takes the model that looks best on it: so what
# serves is overrated on average. The debt shows that only when it is there; the plan aims higher by
# the mean error before. It is shrunk, since 300 labels alone show an error of two points by chance.

JUDGED = 300.0
"""The number of judged requests over which the error is averaged."""
DOUBTED = 50.0
"""The weight, in judged requests, of the prior that predictions are right."""


@dataclass(slots=True)
class Overrating:
    """The fading sum of predictions minus labels of judged requests, and its weight."""

    excess: float = 0.0
    weight: float = 0.0

    @property
    def mean(self) -> float:
        """The mean of prediction minus label, shrunk towards 0."""
        return self.excess / (self.weight + DOUBTED)

    def judged(self, excess: float, weight: float) -> None:
        """Count a judged request; ``excess`` has the ``weight`` of its label already."""
        keep = math.exp(-weight / JUDGED)
        self.excess = self.excess * keep + excess
        self.weight = self.weight * keep + weight

    def revised(self, difference: float) -> None:
        """Count a later verdict: ``difference`` is the change of the excess."""
        self.excess += difference


# The account of one service level under `adaptive`: the shortfall owed and the pending requests.
#
# The promise is about the running rate, so the accumulated shortfall counts. Unlike the paper's
# queue it may go below zero: surplus is credit, bounded so that a good morning does not pay for a
# bad week (reflected at zero, as published, the cost is 0.498 instead of 0.429 MJ).
#
# A served request without a verdict counts with its prediction, weighted by the share of judged
# requests, and for the next ``PENDING`` requests only: then no label is expected any more. In the
# share it counts as unanswered as soon as a later request is judged, so that few labels are noticed
# at once. A later label counts as any other, and corrects the share.

CREDIT = 30.0
"""The largest credit, in satisfied requests."""
PENDING = 256
"""The number of requests after which a label is not expected any more."""
ANSWER_MEMORY = 500
"""The number of requests over which the share of judged ones is averaged."""
MOST = 4.0
"""The largest factor by which a verdict counts more, or less, than the average one: a verdict of a
rare draw must not swing the queue."""


class Pending(NamedTuple):
    """A request without a verdict yet: its number, and alpha minus its prediction."""

    number: int
    shortfall: float


@dataclass(slots=True)
class Account:
    """The shortfall of requests: ``shortfall`` is summed over judged requests; ``pending`` holds
    the expected shortfall of each of the others, ``expected`` their sum. ``answered_share`` is the
    judged share of the ``seen`` requests up to the one numbered ``passed``. ``stand_for`` is the
    mean number of requests that a recent verdict stands for: one of a rare draw counts more;
    ``forced`` are the requests that only one candidate could take."""

    shortfall: float = 0.0
    answered_share: float = 1.0
    seen: int = 0
    answered_requests: int = 0
    requests: int = 0
    passed: int = 0
    expected: float = 0.0
    stand_for: float = 1.0
    pending: OrderedDict[str, Pending] = field(default_factory=OrderedDict)
    forced: ForcedRequests = field(default_factory=ForcedRequests)
    overrating: Overrating = field(default_factory=Overrating)

    @property
    def queue(self) -> float:
        """The expected number of satisfied requests owed."""
        return self.shortfall + self.answered_share * self.expected

    def decided(self, request_id: str, expected_shortfall: float) -> None:
        """Add a decided request to the pending ones."""
        self.requests += 1
        self.pending[request_id] = Pending(self.requests, expected_shortfall)
        self.expected += expected_shortfall
        while (oldest := next(iter(self.pending.values())).number) <= self.requests - PENDING:
            self._close(next(iter(self.pending)))
            self._pass(oldest, answer=0.0)

    def answered(
        self, request_id: str, shortfall: float, stands_for: float = 1.0, weight: float = 1.0
    ) -> None:
        """Count the first verdict on a request: ``shortfall`` is alpha minus the satisfaction,
        times the ``weight`` of the label."""
        self.answered_requests += 1
        newest = min(self.answered_requests, ANSWER_MEMORY)
        self.stand_for += (stands_for - self.stand_for) / newest
        number = 0  # of one that was given up
        if request_id in self.pending:
            number, expected = self.pending[request_id]
            excess = shortfall - weight * expected
            self.overrating.judged(
                self.weighed(excess, stands_for), self.weighed(weight, stands_for)
            )
            self._close(request_id)
        self._pass(number, answer=1.0)
        self._count(self.weighed(shortfall, stands_for))

    def failed(self, request_id: str, earlier: tuple[float, float] | None) -> None:
        """Take back what was expected of a request that got no answer, and its ``earlier``
        verdict: the shortfall, and the number of requests it stands for."""
        if request_id in self.pending:
            self._close(request_id)
        if earlier is not None:
            self.answered_requests -= 1
            self._count(-self.weighed(*earlier))

    def revised(self, difference: float) -> None:
        """Count a later verdict: ``difference`` is its shortfall minus that of the one it replaces,
        both as ``weighed``."""
        self.overrating.revised(difference)
        self._count(difference)

    def weighed(self, shortfall: float, stands_for: float) -> float:
        """Weigh a shortfall, in judged requests: if all verdicts stand for equally many, each
        counts once."""
        return shortfall * min(max(stands_for / self.stand_for, 1.0 / MOST), MOST)

    def counted(self, given: Given) -> Label:
        """Return the label with the weight that ``weighed`` gives it."""
        label = given.label
        return Label(label.value, self.weighed(label.weight, given.stands_for))

    def settle(self) -> None:
        """Reset the shortfall or credit to 0, and drop the pending requests."""
        self.shortfall = self.expected = 0.0
        self.pending.clear()

    def plain(self) -> dict[str, Any]:
        """Return it as JSON; what is rare or comes late only if there is any."""
        rare: dict[str, Any] = {}
        if self.forced.weight > 0.0:
            rare["forced"] = self.forced.plain()
        if self.overrating != Overrating():
            rare["overrating"] = [self.overrating.excess, self.overrating.weight]
        return rare | {
            "shortfall": self.shortfall,
            "answered_share": self.answered_share,
            "seen": self.seen,
            "answered_requests": self.answered_requests,
            "requests": self.requests,
            "passed": self.passed,
            "expected": self.expected,
            "stand_for": self.stand_for,
            "pending": [[name, *pending] for name, pending in self.pending.items()],
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Account":
        """Rebuild the account that ``plain`` describes."""
        pending = OrderedDict((name, Pending(*rest)) for name, *rest in plain["pending"])
        forced = ForcedRequests.of(plain.get("forced", ()))
        overrating = Overrating(*plain.get("overrating", ()))
        rebuilt = {"pending": pending, "forced": forced}
        return cls(**{**plain, **rebuilt, "overrating": overrating})

    def _close(self, request_id: str) -> None:
        closed = self.pending.pop(request_id)
        # A running sum accumulates rounding errors: reset once nothing is pending.
        self.expected = self.expected - closed.shortfall if self.pending else 0.0

    def _count(self, shortfall: float) -> None:
        self.shortfall = max(self.shortfall + shortfall, -CREDIT)

    def _pass(self, number: int, answer: float) -> None:
        """Count in the share that the ``number``-th request got an ``answer`` or none, and that
        those before it got none so far. One that had passed counts as unanswered already."""
        if number <= self.passed:
            late = answer / min(self.seen or 1, ANSWER_MEMORY)
            self.answered_share = min(self.answered_share + late, 1.0)
            return
        waiting = sum(self.passed < each.number < number for each in self.pending.values())
        for found in [0.0] * waiting + [answer]:
            self.seen += 1
            self.answered_share += (found - self.answered_share) / min(self.seen, ANSWER_MEMORY)
        self.passed = number
