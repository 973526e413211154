"""Policy `adaptive` as a fold: a predictor for the zoo, an account for each service level."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from litellm_messplus.learning.account import Account
from litellm_messplus.learning.entries import Decided, Example, Labelled
from litellm_messplus.learning.unseen_calls import UnseenCalls
from litellm_messplus.prediction.head import Arrays
from litellm_messplus.prediction.label import Label
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.recent_prompts import RecentPrompts
from litellm_messplus.routing import adaptive
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.routing.knowledge import Knowledge
from litellm_messplus.settings.schema import ServiceLevel


class AdaptivePolicy:
    """Learns from every labelled call; the queue carries predictions until labels come."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.accounts: dict[str, Account] = {}
        self.unseen = UnseenCalls()

    def account(self, level: str) -> Account:
        """Of a service level; a new one owes nothing, and is opened by its first entry only."""
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
        known = self._knowledge([estimate.candidate for estimate in situation.estimates])
        return adaptive.decide(situation, known, self.account(level.name).answered_share)

    def decided(self, entry: Decided) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        account.decided(entry.request_id, entry.expected_shortfall)
        self.unseen.decided(entry.calls - 1)

    def answered(self, entry: Labelled, verdict: Label, previous: Label | None) -> None:
        account = self.accounts.setdefault(entry.service_level, Account())
        shortfall = -verdict.residual(entry.alpha)
        if previous is None:
            account.answered(entry.request_id, shortfall)
        else:
            account.revised(shortfall + previous.residual(entry.alpha))

    def unseen_answered(self, previous: Label | None) -> None:
        if previous is None:
            self.unseen.answered()

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        candidate, prompt = example.candidate, example.prompt
        if previous is None:
            self.predictor.learn(candidate, call_id, example.request_id, prompt, verdict)
        else:
            self.predictor.revise(candidate, call_id, prompt, previous, verdict)

    def plain(self) -> dict[str, Any]:
        accounts = {name: account.plain() for name, account in self.accounts.items()}
        unseen = [self.unseen.made, self.unseen.labelled, self.unseen.requests]
        return {"accounts": accounts, "unseen": unseen, "predictor": self.predictor.plain()}

    def arrays(self) -> Arrays:
        return self.predictor.arrays()

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.accounts = {name: Account.of(found) for name, found in plain["accounts"].items()}
        self.unseen = UnseenCalls(*plain["unseen"])
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
