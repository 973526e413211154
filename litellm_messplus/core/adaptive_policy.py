"""Policy `adaptive` as a fold: a predictor for the zoo, an account for each service level."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from litellm_messplus.core import adaptive, held, trying
from litellm_messplus.core.account import Account
from litellm_messplus.core.answer_heads import Spread, Turn
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.entries import Decided, Example, FailedCall, Labelled
from litellm_messplus.core.head import Arrays, Label
from litellm_messplus.core.predictor import Predictor, Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.recent import RecentPrompts
from litellm_messplus.core.trying import Knowledge
from litellm_messplus.core.verdict import Given
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.vocabulary import WARM_UP, is_before
from litellm_messplus.settings.promise import ServiceLevel

# Whether calls that no user sees get labels, from a check or from feedback that names the call.
# Without labels they teach nothing and are not worth their price. Calls of requests whose labels
# are bought are not counted here: they always get labels.
#
# A label comes some requests after its call. So a few calls are taken to be waiting for labels, and
# do not count as unlabelled: ``FEW`` at first, and more as requests go by, because labels may come
# late, or for a part of the requests only. Counts decay with the requests, so that a judge that is
# switched on later is noticed.

MEMORY = 5000.0
"""The time constant of the counts, in requests. Without labels, some six calls in a thousand
requests are still made, to notice if labels begin to come."""
FEW = 5.0
"""The number of unlabelled calls after which a zoo without any label makes no more."""
PATIENCE = 0.4
"""The growth of that number with the square root of the requests: 13 after 1000 requests."""


@dataclass(slots=True)
class UnseenCalls:
    """The decayed counts of unseen calls: ``made``, those ``labelled``, and the ``requests``
    meanwhile."""

    made: float = 0.0
    labelled: float = 0.0
    requests: float = 0.0

    @property
    def labelled_share(self) -> float:
        """The labelled share of the calls that no longer wait for a label; 1 while all may be
        waiting."""
        waiting = max(FEW, PATIENCE * math.sqrt(self.requests))
        due = self.made - waiting
        return 1.0 if due <= self.labelled else self.labelled / due

    @property
    def labelled_of_all(self) -> float:
        """The labelled share of all calls made, without allowance for late labels; 1 before there
        are ``FEW``. Used for calls of a new model."""
        return 1.0 if self.made < FEW else self.labelled / self.made

    def decided(self, unseen: int) -> None:
        """Count a decided request with ``unseen`` calls in addition to the served one."""
        keep = math.exp(-1.0 / MEMORY)
        self.made = self.made * keep + unseen
        self.labelled *= keep
        self.requests = self.requests * keep + 1.0

    def failed(self) -> None:
        """Take back a call without an answer, which cannot be labelled."""
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
        """The number of labelled calls of each candidate that was added while the zoo served."""

    def account(self, level: str) -> Account:
        """Return the account of a service level; a new one owes nothing, and is stored only with
        its first entry."""
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
            return held.forced(situation, account.forced.expected(only.satisfaction))
        candidates = [estimate.candidate for estimate in situation.estimates]
        known = self._knowledge(candidates, account.overrating.mean)
        aimed = replace(situation, alpha=account.forced.free_aim(situation.alpha))
        decision = adaptive.decide(aimed, known, account.answered_share)
        if not situation.newcomers:
            return decision
        return trying.tried(decision, aimed, self.unseen.labelled_of_all)

    def decided(self, entry: Decided) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        self.predictor.decided(entry.at, entry.is_bought)
        if is_before(entry.service_level) and account.requests == WARM_UP:
            account.settle()
        account.decided(entry.request_id, entry.expected_shortfall)
        self.unseen.decided(0 if entry.is_bought else entry.calls - 1)

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        shortfall = -verdict.label.residual(entry.alpha)
        if previous is None:
            account.answered(entry.request_id, shortfall, verdict.stands_for, verdict.label.weight)
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
            earlier = None
            if verdict is not None:
                earlier = -verdict.label.residual(call.alpha), verdict.stands_for
            self.accounts.setdefault(call.service_level, Account()).failed(call.request_id, earlier)
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
            if not trying.is_settled(
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
            if self.trials[candidate] >= trying.ENOUGH:
                del self.trials[candidate]
        if previous is None:
            self.predictor.learn(
                candidate, call_id, example.request_id, prompt, verdict, example.seen
            )
        else:
            self.predictor.revise(candidate, call_id, prompt, previous, verdict, example.answer)

    def read(self, example: Example) -> None:
        if example.answer is None:
            return
        candidate, prompt = example.candidate, example.prompt
        if example.turn is Turn.REPLACED:
            judged = sum(account.answered_requests for account in self.accounts.values())
            requests = sum(account.requests for account in self.accounts.values())
            share = min(judged / max(requests, 1), 1.0)
            self.predictor.replaced(candidate, prompt, example.answer, share)
        self.predictor.read(candidate, prompt, example.answer)

    def shown(self, candidate: str, prompt: Prompt, seen: Seen) -> tuple[float, float]:
        return self.predictor.shown(candidate, prompt, seen)

    def spread(self, candidates: Sequence[str]) -> Spread | None:
        places = [self.predictor.index[name] for name in candidates]
        return self.predictor.answers.spread.of(places)

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

    def _knowledge(self, candidates: Sequence[str], overrated: float) -> Knowledge:
        known = self.predictor
        places = [known.index[name] for name in candidates]
        return Knowledge(
            rate=[known.rate[place] for place in places],
            deviation=[known.deviation[place] for place in places],
            optimism=[known.optimism[place] for place in places],
            is_blank=known.is_blank,
            unseen_labelled=self.unseen.labelled_share,
            evidence=known.heads.evidence,
            overrated=overrated,
        )
