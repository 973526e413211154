"""The account of one service level under `adaptive`: what is owed, and what is still pending; with
what its forced and its failed requests come to."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litellm_messplus.prediction.head import Label
from litellm_messplus.routing.held import free_aim
from litellm_messplus.state.credits import Course
from litellm_messplus.state.verdict import Given

# Forced requests as the log tells of them: what share they are of the judged ones, at what rate.
#
# A request is forced where the gates left one candidate. The share is of judged requests, for the
# promise is about those; a zoo whose forced requests nobody judges has none to make up for.

MEMORY = 500
"""Judged requests over which the share is taken, and forced ones over which the rate is."""
PRIOR = 8.0
"""Forced verdicts' worth of belief that they are as good as expected, before there are any."""


@dataclass(slots=True)
class ForcedRequests:
    """The forced requests of one service level. ``weight`` is of the verdicts that ``rate`` is the
    mean of."""

    share: float = 0.0
    rate: float = 0.0
    weight: float = 0.0

    def answered(
        self, verdict: Label, judged: int, *, is_forced: bool, counts: float = 1.0
    ) -> None:
        """Count the first verdict on a request, the ``judged``-th of its level, as many times as it
        ``counts``: ``verdict`` is weighed so already."""
        part = min(counts / min(max(judged, 1), MEMORY), 1.0)
        self.share += (float(is_forced) - self.share) * part
        if is_forced:
            self.weight = min(self.weight + verdict.weight, MEMORY)
            self.rate += (verdict.value - self.rate) * verdict.weight / self.weight

    def revised(self, previous: Label, verdict: Label) -> None:
        """Put a later verdict on a forced request in the place of the one before."""
        gained = verdict.weight * (verdict.value - self.rate)
        lost = previous.weight * (previous.value - self.rate)
        self.rate = min(max(self.rate + (gained - lost) / max(self.weight, 1.0), 0.0), 1.0)

    def expected(self, otherwise: float) -> float:
        """Return the rate that a forced request is expected to have; ``otherwise`` is what is
        expected of it where no verdicts are there to say so."""
        return (self.weight * self.rate + PRIOR * otherwise) / (self.weight + PRIOR)

    def free_aim(self, aim: float) -> float:
        """Return what the free requests of a level aim at, whose requests together aim at
        ``aim``."""
        return free_aim(aim, self.share, self.expected(aim))

    def plain(self) -> list[float]:
        return [self.share, self.rate, self.weight]

    @classmethod
    def of(cls, plain: Sequence[float]) -> "ForcedRequests":
        """Rebuild what ``plain`` gave."""
        return cls(*plain)


# What is owed for failed requests where a promise counts them: of an outage, no more than a few.
#
# No choice of model answers a request that every deployment refuses, and satisfying others better
# is no help to whoever got an error. So failures are made up for as long as they are a few among
# many, and an outage is not repaid: its debt is bounded by what `REPAID` satisfied requests
# repay, each of which repays 1 - alpha. Where alpha is 1, nothing ever could.

REPAID = 20.0
"""Satisfied requests that repay all that is owed of one outage."""
FEW = 0.05
"""Failures for each judged request that are made up for in full, however long they go on; beyond
that share the alert `failing` stands."""


@dataclass(slots=True)
class FailureDebt:
    """The debt of failures that was taken on and is not worn off, in judged requests."""

    taken: float = 0.0

    def failed(self, alpha: float, answered_share: float) -> float:
        """Return what a failed request is owed: alpha, for it counts as unsatisfied, as far as the
        bound has room. Of requests some users judge, of failures all are known: so one counts as
        the share of answers."""
        most = answered_share * REPAID * (1.0 - alpha)
        owed = min(answered_share * alpha, max(most - self.taken, 0.0))
        self.taken += owed
        return owed

    def judged(self) -> None:
        """Make room, as an answer was judged."""
        self.taken = max(self.taken - FEW, 0.0)


# The account of one service level under `adaptive`: what is owed, and what is still pending.
#
# The promise is about the running rate, so what counts is the accumulated shortfall. Unlike the
# paper's queue it may go below zero: surplus is credit, bounded so that a good morning does not pay
# for a bad week (reflected at zero, as published, the cost is 0.498 instead of 0.429 MJ).
#
# A served request that nobody has judged yet counts with its prediction, weighed by how often users
# answer at all, and for the next ``PENDING`` requests only: then its label is not expected any
# more. One that comes after all counts as any other, in the share of answers too.

CREDIT = 30.0
"""Satisfied requests that can be saved up."""
PENDING = 256
"""Requests after which a label is not expected any more."""
ANSWER_MEMORY = 500
"""Requests over which the share of answered ones is taken."""
MOST = 4.0
"""Factor by which a verdict may count more than the usual one, or less: one of a rare draw must not
swing the queue."""


class Pending(NamedTuple):
    """A request that nobody has judged yet: its number, and alpha minus its prediction."""

    number: int
    shortfall: float


@dataclass(slots=True)
class Account:
    """The shortfall of requests: ``shortfall`` is over judged requests; ``pending`` holds the
    expected one of each of the others, and ``expected`` their sum. ``stand_for`` is how many
    requests a verdict stands for, in the mean of the newest: one of a rare draw counts more than
    one of a common draw; ``forced`` are the requests that a single candidate could take. A request
    is a whole conversation where the promise counts those; ``courses`` are those of the pending
    ones that have gone on."""

    shortfall: float = 0.0
    answered_share: float = 1.0
    seen: int = 0
    answered_requests: int = 0
    requests: int = 0
    expected: float = 0.0
    stand_for: float = 1.0
    pending: OrderedDict[str, Pending] = field(default_factory=OrderedDict)
    forced: ForcedRequests = field(default_factory=ForcedRequests)
    courses: dict[str, Course] = field(default_factory=dict)
    failures: FailureDebt = field(default_factory=FailureDebt)

    @property
    def queue(self) -> float:
        """The requests that are owed in expectation."""
        return self.shortfall + self.answered_share * self.expected

    def decided(self, request_id: str, expected_shortfall: float) -> None:
        """Note that a request went out."""
        self.requests += 1
        self.pending[request_id] = Pending(self.requests, expected_shortfall)
        self.expected += expected_shortfall
        while next(iter(self.pending.values())).number <= self.requests - PENDING:
            self._close(next(iter(self.pending)))
            self._expect(answer=0.0)

    def went_on(self, request_id: str, shortfall: float | None) -> None:
        """Note a further turn of the conversation that a request began: ``shortfall`` is expected
        of the model that takes over, None where the same one goes on. One that is judged, or given
        up as never to be, is past that."""
        begun = self.pending.get(request_id)
        if begun is None:
            return
        before = self.courses.get(request_id) or Course.begun(begun.shortfall)
        course = self.courses[request_id] = before.went_on(shortfall)
        self.pending[request_id] = begun._replace(shortfall=course.expected)
        self.expected += course.expected - begun.shortfall

    def answered(self, request_id: str, shortfall: float, stands_for: float = 1.0) -> None:
        """Count the first verdict on a request: ``shortfall`` is alpha minus the satisfaction."""
        self.failures.judged()
        self.answered_requests += 1
        newest = min(self.answered_requests, ANSWER_MEMORY)
        self.stand_for += (stands_for - self.stand_for) / newest
        if request_id in self.pending:
            self._close(request_id)
            self._expect(answer=1.0)
        elif self.seen > 0:  # given up as unanswered
            late = self.answered_share + 1.0 / min(self.seen, ANSWER_MEMORY)
            self.answered_share = min(late, 1.0)
        self._count(self.weighed(shortfall, stands_for))

    def failed(self, request_id: str, told: tuple[float, float] | None) -> None:
        """Take back what was expected of a request that got no answer, and the verdict that came
        before: its shortfall, and how many requests it stands for."""
        if request_id in self.pending:
            self._close(request_id)
        if told is not None:
            self.answered_requests -= 1
            self._count(-self.weighed(*told))

    def owed_for_failure(self, alpha: float) -> None:
        """Count a failed request as an unsatisfied one, as far as failures are made up for."""
        self._count(self.failures.failed(alpha, self.answered_share))

    def revised(self, difference: float) -> None:
        """Count a later verdict: ``difference`` is its shortfall minus that of the one it replaces,
        each as it is ``weighed``."""
        self._count(difference)

    def weighed(self, shortfall: float, stands_for: float) -> float:
        """Weigh a shortfall in judged requests: where all verdicts stand for as many, each counts
        once."""
        return shortfall * min(max(stands_for / self.stand_for, 1.0 / MOST), MOST)

    def counted(self, given: Given) -> Label:
        """Return a label that counts as often as it is ``weighed``."""
        label = given.label
        return Label(label.value, self.weighed(label.weight, given.stands_for))

    def settle(self) -> None:
        """Settle all that is owed and saved up, and expect nothing of what is pending."""
        self.shortfall = self.expected = 0.0
        self.pending.clear()
        self.courses.clear()

    def plain(self) -> dict[str, Any]:
        """Return it as JSON; forced requests, courses and failures only where there are any, else
        it is what it always was."""
        rare: dict[str, Any] = {}
        if self.forced.weight > 0.0:
            rare["forced"] = self.forced.plain()
        if self.courses:
            rare["courses"] = {name: list(course) for name, course in self.courses.items()}
        if self.failures.taken > 0.0:
            rare["failures"] = self.failures.taken
        return rare | {
            "shortfall": self.shortfall,
            "answered_share": self.answered_share,
            "seen": self.seen,
            "answered_requests": self.answered_requests,
            "requests": self.requests,
            "expected": self.expected,
            "stand_for": self.stand_for,
            "pending": [[name, *pending] for name, pending in self.pending.items()],
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Account":
        """Rebuild the account that ``plain`` describes."""
        pending = OrderedDict((name, Pending(*rest)) for name, *rest in plain["pending"])
        forced = ForcedRequests.of(plain.get("forced", ()))
        courses = {name: Course(*course) for name, course in plain.get("courses", {}).items()}
        failures = FailureDebt(plain.get("failures", 0.0))
        rebuilt = {"pending": pending, "forced": forced, "courses": courses, "failures": failures}
        return cls(**{**plain, **rebuilt})

    def _close(self, request_id: str) -> None:
        closed = self.pending.pop(request_id)
        self.courses.pop(request_id, None)
        # A sum that only moves keeps what rounding left in it: nothing, once nothing is pending.
        self.expected = self.expected - closed.shortfall if self.pending else 0.0

    def _count(self, shortfall: float) -> None:
        self.shortfall = max(self.shortfall + shortfall, -CREDIT)

    def _expect(self, answer: float) -> None:
        self.seen += 1
        self.answered_share += (answer - self.answered_share) / min(self.seen, ANSWER_MEMORY)
