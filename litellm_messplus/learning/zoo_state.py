"""Everything that is learned about one zoo."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeGuard

from litellm_messplus.costs.token_estimator import TokenEstimator
from litellm_messplus.learning.entries import Decided, Entry, Example, Labelled, Settled
from litellm_messplus.learning.policy import Policy
from litellm_messplus.learning.verdict import Rule
from litellm_messplus.prediction.length_head import LengthHead


@dataclass(slots=True)
class ZooState:
    """The fold of the log for one zoo: ``apply`` is its only way to change.

    ``rule`` makes verdicts of labels; ``requests`` counts the decided requests of each service
    level.
    """

    encoder: str
    rule: Rule
    policy: Policy
    estimators: dict[str, TokenEstimator]
    lengths: LengthHead
    requests: Counter[str] = field(default_factory=Counter)

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        match entry:
            case Decided():
                self.requests[entry.service_level] += 1
                self.policy.decided(entry)
            case Settled():
                self._settle(entry)
            case Labelled():
                self._label(entry)

    def _settle(self, entry: Settled) -> None:
        estimator = self.estimators.get(entry.candidate or "")
        if estimator and entry.prompt_tokens is not None and entry.completion_tokens is not None:
            length = self._length(estimator, entry.example, entry.completion_tokens)
            estimator.observe(entry.prompt_characters, entry.prompt_tokens, length, entry.seconds)
        verdict = self.rule.verdict(entry.given)
        if verdict is not None and self._can_teach(entry.example):
            self.policy.learn(entry.example, entry.call_id, verdict, None)

    def _length(self, estimator: TokenEstimator, example: Example | None, tokens: float) -> float:
        """What the answer would have been long for an average prompt; the prompt teaches."""
        if not self._can_teach(example) or example.features is None:
            return tokens
        expected, usual = self.lengths.multiple(example.features), estimator.completion_tokens
        if usual.count > 0 and usual.value > 0.0:
            self.lengths.learn(example.features, tokens / usual.value)
        return tokens / expected

    def _label(self, entry: Labelled) -> None:
        """Only what changes the verdict counts: a judge's word after the user's does not."""
        previous = self.rule.verdict(entry.earlier)
        verdict = self.rule.verdict((*entry.earlier, entry.given))
        if verdict is None or verdict == previous:
            return
        if entry.is_served:
            self.policy.answered(entry, verdict, previous)
        else:
            self.policy.unseen_answered(previous)
        if self._can_teach(entry.example):
            self.policy.learn(entry.example, entry.call_id, verdict, previous)

    def _can_teach(self, example: Example | None) -> TypeGuard[Example]:
        """Of a candidate that there is, under the encoder that is in use."""
        return (
            example is not None
            and example.candidate in self.estimators
            and example.encoder == self.encoder
        )
