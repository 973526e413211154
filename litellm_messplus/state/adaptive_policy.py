"""Policy `adaptive` as a fold: a predictor for the zoo, an account for each service level."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from litellm_messplus.conversations.account import Course
from litellm_messplus.prediction.head import Arrays, Label
from litellm_messplus.prediction.predictor import Predictor, RecentPrompts
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing import adaptive, gates, newcomers
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.routing.trying import Knowledge
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.state.entries import Decided, Example, FailedCall, Given, Labelled
from litellm_messplus.state.failed import FailureDebt
from litellm_messplus.state.forced import ForcedRequests
from litellm_messplus.switching.modes import WARM_UP
from litellm_messplus.vocabulary import is_before

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
"""Of how many times as much as the usual one a verdict may count, and how many times less: one of a
rare draw must not swing the queue."""


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


# Do calls that no user sees get labels? A check gives them some, or feedback that names the call.
# Where nobody labels them they teach nothing and are not worth their price. Those of a request
# whose labels are bought are left out here: they get theirs.
#
# A label comes some requests after its call. So a few calls are taken to be waiting for theirs, and
# do not count as unlabelled: ``FEW`` at first, and more as requests go by, for labels may come
# late, or to a part of the requests only. Counts fade with the requests, so that a judge that is
# switched on later is found out.

MEMORY = 5000.0
"""Requests over which all is counted. Where nobody labels them, some six calls in a thousand
requests are made all the same, to see whether that is still so."""
FEW = 5.0
"""Calls that may be without a label before a zoo that has never seen one makes no more."""
PATIENCE = 0.4
"""By how many times the root of the requests those grow: after 1000 requests they are 13."""


@dataclass(slots=True)
class UnseenCalls:
    """The counts of recent unseen calls: how many were made, how many of those have a label, and in
    how many ``requests``."""

    made: float = 0.0
    labelled: float = 0.0
    requests: float = 0.0

    @property
    def labelled_share(self) -> float:
        """The labelled share of the calls that are not waiting for their label any more; 1 while
        all may be."""
        waiting = max(FEW, PATIENCE * math.sqrt(self.requests))
        due = self.made - waiting
        return 1.0 if due <= self.labelled else self.labelled / due

    @property
    def told_share(self) -> float:
        """The labelled share of all that were made, without patience; 1 before there are a few.
        Calls of a model that nobody knows wait for nobody."""
        return 1.0 if self.made < FEW else self.labelled / self.made

    def decided(self, unseen: int) -> None:
        """Note that a request went out, with so many calls beside the served one."""
        keep = math.exp(-1.0 / MEMORY)
        self.made = self.made * keep + unseen
        self.labelled *= keep
        self.requests = self.requests * keep + 1.0

    def failed(self) -> None:
        """Take one back that got no answer: nobody could label it."""
        self.made = max(self.made - 1.0, 0.0)

    def answered(self) -> None:
        """Count the first verdict on one of them."""
        self.labelled += 1.0


class AdaptivePolicy:
    """The policy that learns from every labelled call; the queue carries predictions until labels
    come."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.accounts: dict[str, Account] = {}
        self.unseen = UnseenCalls()
        self.trials: dict[str, int] = {}
        """Labelled calls so far of each candidate that came while the zoo served."""

    def account(self, level: str) -> Account:
        """Return the account of a service level; a new one owes nothing, and is opened by its first
        entry only."""
        return self.accounts.get(level) or Account()

    @property
    def recent(self) -> RecentPrompts:
        return self.predictor.recent

    def predict(self, prompt: Prompt, candidates: Sequence[str]) -> list[float]:
        known = self.predictor.satisfaction(prompt)
        return [known[self.predictor.index[name]] for name in candidates]

    def queue(self, level: str) -> float:
        return self.account(level).queue

    def answered_requests(self, level: str) -> int:
        return self.account(level).answered_requests

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        account = self.account(level.name)
        if situation.is_forced:
            (only,) = situation.estimates
            return gates.forced(situation, account.forced.expected(only.satisfaction))
        known = self._knowledge([estimate.candidate for estimate in situation.estimates])
        told_share = self.unseen.told_share
        if situation.counted is not None:  # one first answer says nothing of a whole task
            known, told_share = replace(known, unseen_labelled=0.0), 0.0
            situation = _relative(situation)
        aimed = adaptive.charged(replace(situation, alpha=account.forced.free_aim(situation.alpha)))
        decision = adaptive.decide(aimed, known, account.answered_share)
        decision = adaptive.without_draw(decision, situation.limits)
        if not situation.newcomers:
            return decision
        return newcomers.tried(decision, aimed, told_share)

    def decided(self, entry: Decided) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        if is_before(entry.service_level) and account.requests == WARM_UP:
            account.settle()
        if entry.counted_with is not None:
            shortfall = None if entry.is_held else entry.expected_shortfall
            account.went_on(entry.counted_with, shortfall)
            return
        account.decided(entry.request_id, entry.expected_shortfall)
        self.unseen.decided(0 if entry.is_bought else entry.calls - 1)

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        if entry.is_failed:
            if previous is None:
                account.owed_for_failure(entry.alpha)
            return
        shortfall = -verdict.label.residual(entry.alpha)
        if previous is None:
            account.answered(entry.request_id, shortfall, verdict.stands_for)
            judged = account.answered_requests
            account.forced.answered(
                account.counted(verdict),
                judged,
                is_forced=entry.is_forced,
                counts=account.weighed(1.0, verdict.stands_for),
            )
            return
        replaced = -previous.label.residual(entry.alpha)
        account.revised(
            account.weighed(shortfall, verdict.stands_for)
            - account.weighed(replaced, previous.stands_for)
        )
        if entry.is_forced:
            account.forced.revised(account.counted(previous), account.counted(verdict))

    def failed(self, call: FailedCall, verdict: Given | None) -> None:
        if call.is_served:
            told = None
            if verdict is not None:
                told = -verdict.label.residual(call.alpha), verdict.stands_for
            self.accounts.setdefault(call.service_level, Account()).failed(call.request_id, told)
        elif not call.is_bought:
            self.unseen.failed()

    def unseen_answered(self, previous: Label | None) -> None:
        if previous is None:
            self.unseen.answered()

    def add(self, candidate: str) -> None:
        self.predictor.add(candidate)

    def remove(self, candidate: str) -> None:
        self.predictor.remove(candidate)
        self.trials.pop(candidate, None)

    def bring_in(self, candidate: str) -> None:
        self.trials[candidate] = 0

    def newcomers(self, alpha: float, candidates: Sequence[str]) -> tuple[str, ...]:
        known = self.predictor
        places = {name: known.index[name] for name in candidates if name in self.trials}
        return tuple(
            name
            for name, place in places.items()
            if not newcomers.is_settled(
                self.trials[name],
                alpha,
                known.rate[place],
                known.deviation[place],
                known.optimism[place],
            )
        )

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        candidate, prompt = example.candidate, example.prompt
        if previous is None and candidate in self.trials:
            self.trials[candidate] += 1
            if self.trials[candidate] >= newcomers.ENOUGH:
                del self.trials[candidate]
        if previous is None:
            self.predictor.learn(candidate, call_id, example.request_id, prompt, verdict)
        else:
            self.predictor.revise(candidate, call_id, prompt, previous, verdict)

    def plain(self) -> dict[str, Any]:
        accounts = {name: account.plain() for name, account in self.accounts.items()}
        unseen = [self.unseen.made, self.unseen.labelled, self.unseen.requests]
        trials = {"trials": dict(self.trials)} if self.trials else {}
        return trials | {
            "accounts": accounts,
            "unseen": unseen,
            "predictor": self.predictor.plain(),
        }

    def arrays(self) -> Arrays:
        return self.predictor.arrays()

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.accounts = {name: Account.of(found) for name, found in plain["accounts"].items()}
        self.unseen = UnseenCalls(*plain["unseen"])
        self.trials = dict(plain.get("trials", {}))
        self.predictor.load(plain["predictor"], arrays)

    def _knowledge(self, candidates: Sequence[str]) -> Knowledge:
        known = self.predictor
        places = [known.index[name] for name in candidates]
        return Knowledge(
            rate=[known.rate[place] for place in places],
            deviation=[known.deviation[place] for place in places],
            optimism=[known.optimism[place] for place in places],
            is_blank=known.is_blank,
            unseen_labelled=self.unseen.labelled_share,
            evidence=known.heads.evidence,
        )


def _relative(situation: Situation) -> Situation:
    """Let the first call of a conversation cost no more than an average call, in the mean over the
    candidates; what they cost relative to each other stays.

    The first call finds nothing in a cache, and those that follow do. Beside the average call, at
    which the price of satisfaction is found, every candidate would look expensive, and the cheapest
    would serve whatever it satisfies (the agent's example: 222 of 300 tasks at alpha 0.8).
    """
    estimates = situation.estimates
    cost, typical = sum(e.cost for e in estimates), sum(e.typical_cost for e in estimates)
    if cost <= typical:
        return situation
    scale = typical / cost
    return replace(
        situation, estimates=tuple(replace(each, cost=scale * each.cost) for each in estimates)
    )
