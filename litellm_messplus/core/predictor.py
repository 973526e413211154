"""What is known about one zoo: rates, their uncertainty, and what the prompt adds.

A rate refers to all prompts, while a model is called on those for which it is chosen. So its mean
counts each label minus what the prompt was expected to add. Without that, choosing by the prompt
makes the rates drift, and unlocks expensive models: 1.15 instead of 0.93 times the hindsight mix on
the five shared files shuffled together, 1.13 instead of 0.71 on two of them (20 seeds, an earlier
state).

It learns from every labelled call, served or explored; the zoo's service levels share it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.answer_heads import AnswerHeads, Turn, moved
from litellm_messplus.core.change import ChangeTest
from litellm_messplus.core.head import Arrays, Label
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.prompt_heads import PromptHeads
from litellm_messplus.core.rates import FadingRate, optimism, rates
from litellm_messplus.core.recent import RecentPrompts
from litellm_messplus.core.trust import log_odds, logistic, within
from litellm_messplus.runtime.bounded import Bounded

REVISABLE = 4096
"""Labels whose mark is kept, so that a second verdict can replace the first exactly. The weight of
an older one has faded by then."""


class Mark(NamedTuple):
    """The mark of a counted label: its mean's discount then, and what the prompt was expected to
    add."""

    faded: float
    added: float

    def less(self, label: Label) -> Label:
        """Return the label as the mean counts it."""
        return Label(label.value - self.added, label.weight)


class Before(NamedTuple):
    """The answer of another candidate to the same request, read before this one was given."""

    candidate: str
    answer: AnswerSurface


class Seen(NamedTuple):
    """Answers to a request that were read: a call's own, and the one ``before`` it; its ``turn``
    among them."""

    answer: AnswerSurface | None = None
    before: Before | None = None
    turn: Turn = Turn.ONLY


NOTHING = Seen()


class Predictor:
    """The satisfaction of every candidate; ``rate``, ``deviation`` and ``optimism`` are lists in
    the order of ``candidates``. Parts of a prompt that are missing, because its features came too
    late, count as average. Features that are not ``dimension`` finite numbers raise ValueError.
    ``now`` is the time of the newest request, in seconds since 1970: the fold has no other clock.
    """

    def __init__(self, candidates: Sequence[str], dimension: int) -> None:
        self.candidates = tuple(candidates)
        self.index = {name: place for place, name in enumerate(self.candidates)}
        self.means = [FadingRate() for _ in self.candidates]
        self.changes = [ChangeTest() for _ in self.candidates]
        self.now = 0.0
        self.heads = PromptHeads(len(self.candidates), dimension)
        self.answers = AnswerHeads(len(self.candidates))
        self.recent = RecentPrompts(len(self.candidates), dimension)
        self._marks: Bounded[str, Mark] = Bounded(REVISABLE)
        self._refresh()
        self._rebase()

    @property
    def is_blank(self) -> bool:
        """Whether no label has come yet."""
        return all(mean.weight == 0.0 for mean in self.means)

    @property
    def suspicion(self) -> float:
        """The evidence that a candidate has become worse, as a share of what is taken for sure; of
        the most suspected one."""
        return max(test.suspicion for test in self.changes)

    def satisfaction(self, prompt: Prompt) -> list[float]:
        """Predict the probability of satisfaction for one prompt, per candidate."""
        if not prompt.is_read:
            return [within(rate) for rate in self.rate]
        shifts = (self.heads.shifts(prompt) - self.recent.means).tolist()
        found = zip(self._bases, shifts, strict=True)
        return [within(logistic(base + shift)) for base, shift in found]

    def shown(self, candidate: str, prompt: Prompt, seen: Seen) -> tuple[float, float]:
        """Predict the probability of satisfaction of one candidate for one prompt: before its
        answer is read, and after."""
        before = self._before(self.index[candidate], prompt, seen)
        if seen.answer is None:
            return before, before
        place, odds = self.index[candidate], log_odds(before)
        shift = self.answers.shift(place, seen.answer, self._above(place, odds))
        return before, (before if shift == 0.0 else within(logistic(odds + shift)))

    def _above(self, place: int, odds: float) -> float:
        """Return the log-odds of a prompt less those of the candidate's rate: answers are compared
        with usual ones by the prompt alone, since the rate of a model that seems to have changed
        moves at once, and all of its answers would look unusual."""
        return odds - log_odds(self.rate[place])

    def _before(self, place: int, prompt: Prompt, seen: Seen) -> float:
        """Predict without a candidate's own answer, but with the one that was seen before it."""
        known = self.satisfaction(prompt)
        if seen.before is None or seen.before.candidate not in self.index:
            return known[place]
        first, other = seen.before
        expected, shown = self.shown(first, prompt, Seen(other))
        likeness = float(self.answers.spread.likeness[self.index[first], place])
        return float(moved(known[place], expected, shown, likeness))

    def read(self, candidate: str, prompt: Prompt, answer: AnswerSurface) -> None:
        """Learn what a candidate's answers look like from one that ended, judged or not."""
        place = self.index[candidate]
        odds = log_odds(self.satisfaction(prompt)[place])
        self.answers.saw(place, answer, self._above(place, odds))

    def replaced(self, candidate: str, prompt: Prompt, answer: AnswerSurface, share: float) -> None:
        """Learn from an answer that the user did not get what it showed itself: the kept ones are
        judged, a ``share`` of them, and alone would make the candidate look better than it is."""
        if not prompt.is_read or share <= 0.0:
            return
        place = self.index[candidate]
        _, shown = self.shown(candidate, prompt, Seen(answer))
        self.heads.learn(place, prompt, self._bases[place], Label(shown, share))
        self._rebase()

    def learn(
        self,
        candidate: str,
        call_id: str,
        request_id: str,
        prompt: Prompt,
        label: Label,
        seen: Seen = NOTHING,
    ) -> None:
        """Learn the label of one call, from any source and however late it comes."""
        place = self.index[candidate]
        guess, added = within(self.rate[place]), 0.0
        if prompt.is_read or seen.answer is not None:
            mean = guess
            before, guess = self.shown(candidate, prompt, seen)
            added = guess - mean
            self._compare(place, prompt, label, seen)
            self.answers.judged(seen.turn, Label(label.value - guess, label.weight))
            if seen.answer is not None:
                odds = log_odds(before)
                self.answers.learn(place, seen.answer, odds, self._above(place, odds), label)
        if prompt.is_read:
            base = self._bases[place]
            if seen.before is not None:
                base += log_odds(before) - log_odds(self.satisfaction(prompt)[place])
            self.heads.learn(place, prompt, base, label)
            self.recent.add(request_id, prompt, self.heads)
        counted = Label(label.value - added, label.weight)
        faded = self.means[place].add(counted.value, counted.weight)
        self._remember(call_id, Mark(faded, added))
        if self.changes[place].add(label.value, guess, counted, self.means[place], self.now):
            self.heads.doubt(place)
            self.answers.doubt(place)
        self._refresh()
        version = self.recent.version
        self.recent.counted(self.heads, self.rate, self._hope())
        if self.recent.version != version:
            self.answers.settle()
        self._rebase()

    def _compare(self, place: int, prompt: Prompt, label: Label, seen: Seen) -> None:
        """Learn how alike this candidate is to the one whose answer was seen before."""
        if seen.before is None or seen.before.candidate not in self.index:
            return
        first, mine = self.index[seen.before.candidate], self.satisfaction(prompt)[place]
        expected, shown = self.shown(seen.before.candidate, prompt, Seen(seen.before.answer))
        surprise = (shown - expected) / math.sqrt(expected * (1.0 - expected))
        missed = (label.value - mine) / math.sqrt(mine * (1.0 - mine))
        self.answers.compare(first, place, surprise, Label(missed, label.weight))

    def revise(
        self,
        candidate: str,
        call_id: str,
        prompt: Prompt,
        previous: Label,
        label: Label,
        answer: AnswerSurface | None = None,
    ) -> None:
        """Replace the first verdict by a second one (the experts' charges stay)."""
        place = self.index[candidate]
        if prompt.is_read:
            guess = self.satisfaction(prompt)[place]
            self.heads.revise(place, prompt, label.residual(guess) - previous.residual(guess))
        if answer is not None:
            before, guess = self.shown(candidate, prompt, Seen(answer))
            difference = label.residual(guess) - previous.residual(guess)
            self.answers.revise(place, answer, self._above(place, log_odds(before)), difference)
        mark = self._marks.get(call_id)
        if mark is not None:
            self.means[place].revise(mark.faded, mark.less(previous), mark.less(label))
        self._refresh()
        self._rebase()

    def decided(self, at: float, is_bought: bool) -> None:
        """Note that a request was decided, ``at`` a time, and whether its labels are bought."""
        self.now = at
        if is_bought:
            for test in self.changes:
                test.bought()

    def add(self, candidate: str) -> None:
        """Add an unknown candidate after the others."""
        self.means.append(FadingRate())
        self.changes.append(ChangeTest())
        self.heads.add()
        self.answers.add()
        self._name((*self.candidates, candidate))
        self.recent.add_model(self.heads, self.rate, self._hope())
        self._rebase()

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those after it move up."""
        place = self.index[candidate]
        del self.means[place], self.changes[place]
        self.heads.remove(place)
        self.answers.remove(place)
        self._name(tuple(name for name in self.candidates if name != candidate))
        self.recent.remove_model(place, self.heads, self.rate, self._hope())
        self._rebase()

    def _name(self, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        self.index = {name: place for place, name in enumerate(candidates)}
        self._refresh()

    def plain(self) -> dict[str, Any]:
        """Return the labels that can still be revised, the changes of models, and the recent
        prompts without arrays."""
        changes = [test.plain() for test in self.changes]
        recent = self.recent.plain()
        return {"marked": list(self._marks), "changes": changes, "now": self.now, "recent": recent}

    def arrays(self) -> Arrays:
        """Return everything learned; loading it continues exactly."""
        marks = np.array(list(self._marks.values())).reshape(-1, 2)
        heads = {**self.heads.arrays(), **self.answers.arrays()}
        return {"marks": marks, **self._rates(), **heads, **self.recent.arrays()}

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load the ``plain`` and ``arrays`` of a predictor of the same candidates."""
        marks = map(Mark._make, arrays["marks"].tolist())
        self._marks.clear()
        self._marks.update(zip(plain["marked"], marks, strict=True))
        self._load_rates(plain, arrays)
        self.now = plain["now"]
        self.heads.load(arrays)
        self.answers.load(arrays)
        self.recent.load(plain["recent"], arrays)
        self._refresh()
        self._rebase()

    def _rates(self) -> Arrays:
        means = [[each.weight, each.total, each.faded, each.restarted] for each in self.means]
        sums = [test.numbers() for test in self.changes]
        return {"means": np.array(means), "page_sums": np.array(sums)}

    def _load_rates(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.means = [FadingRate(*numbers) for numbers in arrays["means"].tolist()]
        sums = arrays["page_sums"].tolist()
        self.changes = list(map(ChangeTest.of, sums, plain["changes"]))

    def _rebase(self) -> None:
        """Compute what is expected of each candidate on the average prompt, in log-odds."""
        offsets = self.recent.offsets.tolist()
        self._bases = [log_odds(rate) + off for rate, off in zip(self.rate, offsets, strict=True)]

    def _hope(self) -> list[float]:
        """Return the optimism that may be added to each rate, up to a rate of 1."""
        return [
            min(extra * deviation, 1.0 - rate)
            for rate, deviation, extra in zip(self.rate, self.deviation, self.optimism, strict=True)
        ]

    def _refresh(self) -> None:
        self.rate, self.deviation = rates(self.means)
        self.optimism = optimism(self.means)

    def _remember(self, call_id: str, mark: Mark) -> None:
        self._marks[call_id] = mark
