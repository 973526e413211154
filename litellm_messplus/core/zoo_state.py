"""Everything that is learned about one zoo."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.catalog import MOST, Catalog
from litellm_messplus.core.entries import (
    CandidateChanged,
    Decided,
    Entry,
    Example,
    Labelled,
    Settled,
)
from litellm_messplus.core.head import Label
from litellm_messplus.core.policy import Policy
from litellm_messplus.core.prompt_heads import LengthHeads
from litellm_messplus.core.recent import RecentPrompts
from litellm_messplus.core.surface import CHARACTERS
from litellm_messplus.core.verdict import Rule
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import TokenEstimator, expected
from litellm_messplus.runtime.vocabulary import Change

# The expected use of each model for the recent prompts: prompt and completion tokens, and seconds.
#
# Frozen together with the predicted satisfactions: both are of one moment of the fold, so that a
# plan is the same whenever it is made, also in another worker and after a restart. Prices are not
# part of it: they may change while a proxy runs.

Matrix = NDArray[np.float64]
_ARRAYS = ("prompt_tokens", "completion_tokens", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedUse:
    """The use expected of the recent prompts, each array of shape (prompts, models);
    ``version`` is that of the recent prompts."""

    version: int
    prompt_tokens: Matrix
    completion_tokens: Matrix
    seconds: Matrix

    @classmethod
    def none_yet(cls, models: int) -> "ExpectedUse":
        """Return the expected use before there is a recent prompt."""
        return cls(0, *(np.zeros((0, models)) for _ in _ARRAYS))

    @classmethod
    def of(
        cls, recent: RecentPrompts, lengths: LengthHeads, estimators: Sequence[TokenEstimator]
    ) -> "ExpectedUse":
        """Compute the use expected of the recent prompts, as of now."""
        kept = len(recent)
        is_seen = recent.is_seen[:kept, None]
        surface = np.where(is_seen, recent.ramps[:kept], lengths.average.surface)
        multiples = lengths.multiples_of_many(surface, recent.words[:kept])
        characters = np.exp2(recent.numbers[:kept, CHARACTERS].astype(np.float64)) - 1.0
        ratio = np.array([each.characters_per_token.value for each in estimators])
        tokens = characters[:, None] / ratio
        unseen = np.array([each.prompt_tokens.value for each in estimators])
        return cls(
            recent.version,
            np.where(is_seen, tokens, unseen),
            multiples * np.array(expected([each.completion_tokens for each in estimators])),
            multiples * np.array(expected([each.seconds for each in estimators])),
        )

    def cost(self, place: int, price: Price) -> Matrix:
        """Compute the cost of the model at index ``place``, shape (prompts,), in the unit of
        ``price``."""
        return price.of(
            self.prompt_tokens[:, place],
            self.completion_tokens[:, place],
            seconds=self.seconds[:, place],
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "use_version": np.array([self.version]),
            **{f"use_{name}": getattr(self, name) for name in _ARRAYS},
        }

    @classmethod
    def load(cls, arrays: Mapping[str, NDArray[Any]]) -> "ExpectedUse":
        """Load what ``arrays`` returned."""
        return cls(int(arrays["use_version"][0]), *(arrays[f"use_{name}"] for name in _ARRAYS))


CLOSELY = 1000
"""First calls of a model that all teach its answers' lengths; later, one in ``EVERY`` does."""
EVERY = 8
"""Learning a length reads and writes half a megabyte, 0.15 to 0.6 ms in the proxy: for every call,
it cost a worker some 5 % of its throughput, long after the lengths were known."""


@dataclass(slots=True)
class ZooState:
    """The fold of the log for one zoo: ``apply`` is its only way to change.

    ``rule`` chooses verdicts among labels; ``requests`` counts the decided requests of each service
    level; ``use`` is expected of the recent prompts.
    ``estimators`` are in the order of the candidates; ``catalog`` holds which of them are present.
    """

    encoder: str
    rule: Rule
    policy: Policy
    estimators: dict[str, TokenEstimator]
    lengths: LengthHeads
    use: ExpectedUse
    requests: Counter[str] = field(default_factory=Counter)
    catalog: Catalog = field(default_factory=Catalog)

    def plain_means(self) -> dict[str, list[list[float]]]:
        """Return the running means of every candidate's calls, as JSON."""
        return {
            name: [[mean.value, mean.count] for mean in estimator.means()]
            for name, estimator in self.estimators.items()
        }

    def load_means(self, plain: Mapping[str, Any]) -> None:
        """Load the ``plain_means`` of a state of the same candidates."""
        for name, means in plain.items():
            for mean, (value, count) in zip(self.estimators[name].means(), means, strict=True):
                mean.value, mean.count = value, count

    @property
    def candidates(self) -> tuple[str, ...]:
        """Every candidate with a learned state."""
        return tuple(self.estimators)

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        match entry:
            case Decided():
                self.requests[entry.service_level] += 1
                if self.catalog.standings and self.catalog.anchor is None:
                    self.catalog.settle()
                self.policy.decided(entry)
            case Settled():
                self._settle(entry)
            case Labelled():
                self._label(entry)
            case CandidateChanged():
                self._change(entry)

    def become(self, candidates: Sequence[str]) -> None:
        """Set the candidates: others are forgotten, and new ones are appended without any
        knowledge."""
        for name in [each for each in self.estimators if each not in candidates]:
            self._forget(name)
        for name in candidates:
            if name not in self.estimators:
                self._add(name)
        self._see_use()

    def _change(self, entry: CandidateChanged) -> None:
        """Fold a change of a candidate in. One that comes back keeps what was learned."""
        is_known = entry.candidate in self.estimators
        if entry.change is Change.GONE and not is_known:
            return
        self.catalog.apply(entry)
        if is_known:
            return
        if len(self.estimators) >= MOST:
            forgotten = self.catalog.room_for_one(self.candidates)
            if forgotten is None:
                self.catalog.leave_out(entry.candidate)
                return
            self._forget(forgotten)
            del self.catalog.standings[forgotten]
        self._add(entry.candidate)
        if self.requests.total() > 0:
            self.policy.bring_in(entry.candidate)
        self._see_use()

    def _add(self, candidate: str) -> None:
        self.estimators[candidate] = TokenEstimator()
        self.lengths.add()
        self.policy.add(candidate)

    def _forget(self, candidate: str) -> None:
        place = self._places[candidate]
        del self.estimators[candidate]
        self.lengths.remove(place)
        self.policy.remove(candidate)

    def _see_use(self) -> None:
        """Compute the expected use of the recent prompts again, for the changed candidates."""
        recent = self.policy.recent
        if recent is None or recent.version == 0:
            self.use = ExpectedUse.none_yet(len(self.estimators))
        else:
            self.use = ExpectedUse.of(recent, self.lengths, list(self.estimators.values()))

    def _settle(self, entry: Settled) -> None:
        if entry.failed is not None:
            self.policy.failed(entry.failed, self.rule.counting(entry.given))
            return
        estimator = self.estimators.get(entry.candidate or "")
        if estimator and entry.prompt_tokens is not None and entry.completion_tokens is not None:
            multiple = self._multiple(estimator, entry.example, entry.completion_tokens)
            estimator.observe(
                entry.prompt_characters,
                entry.prompt_tokens,
                entry.completion_tokens / multiple,
                None if entry.seconds is None else entry.seconds / multiple,
            )
        if self._can_teach(entry.example):
            self.policy.read(entry.example)
        verdict = self.rule.verdict(entry.given)
        if verdict is not None and self._may_judge(entry.example):
            self._learn(entry.example, entry.call_id, verdict, None)

    def _multiple(self, estimator: TokenEstimator, example: Example | None, tokens: float) -> float:
        """Return the expected length of the answer relative to that for an average prompt (the
        means are of average prompts), and learn from the prompt."""
        if not self._can_teach(example) or not example.prompt.is_read:
            return 1.0
        place, prompt = self._places[example.candidate], example.prompt
        expected, usual = self.lengths.multiples(prompt)[place], estimator.completion_tokens
        is_due = usual.count < CLOSELY or usual.count % EVERY == 0
        if is_due and usual.count > 0 and usual.value > 0.0:
            self.lengths.learn(place, prompt, tokens / usual.value)
        return expected

    def _label(self, entry: Labelled) -> None:
        """Fold a label in; it counts only if it changes the verdict: a judge's label after the
        user's does not. A failed call has no answer to judge."""
        before = self.rule.counting(entry.earlier)
        now = self.rule.counting((*entry.earlier, entry.given))
        if now is None or entry.is_failed:
            return
        previous, verdict = None if before is None else before.label, now.label
        if entry.moves_queue and now != before:
            self.policy.answered(entry, now, before)
        if verdict == previous:
            return
        if not entry.is_served and not entry.is_bought:
            self.policy.unseen_answered(previous)
        if self._may_judge(entry.example):
            self._learn(entry.example, entry.call_id, verdict, previous)

    def _learn(
        self, example: Example, call_id: str, verdict: Label, previous: Label | None
    ) -> None:
        self.policy.learn(example, call_id, verdict, previous)
        recent = self.policy.recent
        if recent is not None and recent.version != self.use.version:
            self.use = ExpectedUse.of(recent, self.lengths, list(self.estimators.values()))

    @property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.estimators)}

    def _may_judge(self, example: Example | None) -> TypeGuard[Example]:
        """Tell whether its verdict measures the candidate for requests that others could take. A
        forced one's does not: the hard requests that only one candidate can take would make it look
        bad, or easy ones good."""
        return self._can_teach(example) and not example.is_forced

    def _can_teach(self, example: Example | None) -> TypeGuard[Example]:
        """Tell whether the example is of a known candidate, under the encoder in use."""
        return (
            example is not None
            and example.candidate in self.estimators
            and example.encoder == self.encoder
        )
