"""What an answer shows, beyond its prompt, of whether it satisfies: a shift in log-odds.

The numbers of an answer are compared with what this model's answers to such prompts usually look
like. One head on the differences is shared by all models, and each model has its own. How far they
are trusted follows from their predictions of labels, by experts as for the prompt; using them
begins with a charge, and the heads begin at nothing, so answers that show nothing change nothing.

An answer also shows something of the *other* models, because a prompt at which one fails is hard:
a model's chance moves by a part of the surprise of the first one's answer, learned for each pair.
"""

import math
from collections.abc import Mapping
from enum import IntEnum
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer import ANSWER_NUMBERS, AnswerSurface
from litellm_messplus.core.head import (
    Arrays,
    Belief,
    Label,
    Observed,
    Vector,
    correct,
    observe,
)
from litellm_messplus.core.trust import EDGE, LEAST_INFORMATION, Trust, logistic

SHARED, OWN = 0.05, 0.03
"""Prior variances of the weights of the shared head and of each model's own."""
SCALES = ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 0.5), (1.0, 0.5), (1.0, 1.0))
"""Share of the shared head, and of a model's own, that an expert uses; the first uses neither."""
USUAL_PRIOR, USUAL_MEMORY = 5.0, 1000.0
"""The weight, in answers, of the prior that a number is usually 0, and the answers remembered."""
FARTHEST, LOGIT = 3.0, 2.0
"""Largest difference from the usual, in deviations, and largest log-odds that multiply it."""
KNEE = 0.5
"""Where the ramps begin, in deviations either way."""
KEPT = 64
"""Answers of each model from which the spread of its scores is taken."""
QUANTILES = (np.arange(10) + 0.5) / 10
LIKENESS, LIKENESS_PRIOR, MOST_LIKE = 0.35, 20.0, 0.8
"""How much of a model's surprise another one shares: the prior, its weight, and the most."""

MARGIN, MISSED_PRIOR, MISSED_MEMORY = 0.02, 20.0, 300.0
"""The weight, in labels, of the prior that second answers are as good as expected, and how many
labels are remembered."""

Array = NDArray[np.floating[Any]]

COUNT = len(ANSWER_NUMBERS)
WIDTH = 4 * COUNT


class Turn(IntEnum):
    """The place of an answer among those that were asked for to answer one request."""

    ONLY = 0
    REPLACED = 1
    SECOND = 2


class Spread(NamedTuple):
    """Expectation of what answers will show, before any call: ``scores``, shape (models, 10), are
    quantiles of the shift in log-odds that each model's answers show, and ``likeness``, shape
    (models, models), is how much of the surprise of a row's answer the model of a column shares.
    ``margin``, shape (1,), is by how much the gain from second answers was overrated lately, and
    ``evidence``, shape (1,), by how many nats predictions from answers have beaten the prompt's."""

    scores: NDArray[np.float64]
    likeness: NDArray[np.float64]
    margin: NDArray[np.float64]
    evidence: NDArray[np.float64]

    def of(self, places: list[int]) -> "Spread":
        """Return that of some models, in the order of their ``places``."""
        likeness = self.likeness[np.ix_(places, places)]
        return Spread(self.scores[places], likeness, self.margin, self.evidence)


class Usual:
    """The usual look of each model's answers, given the log-odds that the prompt predicts above
    those of the model's rate: a line per number, and the deviation from it."""

    def __init__(self, models: int) -> None:
        self.moments = np.tile(np.eye(2) * USUAL_PRIOR, (models, COUNT, 1, 1))
        self.sums = np.zeros((models, 2, COUNT))
        self.variance = np.ones((models, COUNT))
        self.counts = np.zeros((models, COUNT))
        self.lines = np.zeros((models, 2, COUNT))
        self.ramps = np.zeros((models, 2 * COUNT))

    def difference(self, model: int, answer: Array, above: Array) -> Array:
        """Return the difference of answers' numbers, shape (..., numbers), from the usual, in
        deviations, NaN where a number is not known; ``above`` has shape (..., 1)."""
        constant, slope = self.lines[model]
        found = (answer - constant - above * slope) / np.sqrt(self.variance[model] + 0.01)
        return np.asarray(np.minimum(np.maximum(found, -FARTHEST), FARTHEST))

    def add(self, model: int, answer: AnswerSurface, above: float) -> None:
        """Count an answer, whether it is judged or not; what is not known of it changes nothing."""
        basis, known = np.array([1.0, above]), np.isfinite(answer)
        usual = basis @ self.lines[model]
        answer = np.where(known, answer, usual)
        missed, keep = answer - usual, 1.0 - known / USUAL_MEMORY
        self.moments[model] *= keep[:, None, None]
        self.moments[model] += np.multiply.outer(known, np.outer(basis, basis))
        self.sums[model] = keep * self.sums[model] + known * np.outer(basis, answer)
        self.counts[model] = np.minimum(self.counts[model] + known, USUAL_MEMORY)
        rate = known / (self.counts[model] + USUAL_PRIOR)
        self.variance[model] += rate * (missed * missed - self.variance[model])
        ramps = _ramps(self.difference(model, answer, basis[1:]))
        self.ramps[model] += np.tile(rate, 2) * (ramps - self.ramps[model])
        lines = np.linalg.solve(self.moments[model], self.sums[model].T[..., None])
        self.lines[model] = lines[..., 0].T


class AnswerHeads:
    """The heads of all models of a zoo on their answers, in the order of the predictor."""

    def __init__(self, models: int) -> None:
        self.usual = Usual(models)
        self.shared = Belief(WIDTH, SHARED)
        self.own = [Belief(WIDTH, OWN) for _ in range(models)]
        self.trust = Trust(SCALES, is_charge_lasting=True)
        self.recent = np.zeros((models, KEPT, COUNT + 1), np.float32)
        self.read = np.zeros(models, np.int64)
        self.pairs = np.zeros((models, models, 5))
        scores = np.zeros((models, len(QUANTILES)))
        self.spread = Spread(scores, np.full((models, models), LIKENESS), np.zeros(1), np.zeros(1))
        self.missed = np.zeros((2, 2))
        self._weigh()

    def shift(self, model: int, answer: AnswerSurface, above: float) -> float:
        """Predict the shift in log-odds that an answer shows; ``above`` are the log-odds that its
        prompt predicts, less those of the model's rate."""
        return float(self._weights[model] @ self._row(model, answer, above))

    def saw(self, model: int, answer: AnswerSurface, above: float) -> None:
        """Learn what answers look like from any of them, judged or not."""
        found = self.usual.difference(model, answer, np.array([above]))
        self.recent[model, self.read[model] % KEPT] = (*found, above)
        self.read[model] += 1
        self.usual.add(model, answer, above)

    def learn(
        self, model: int, answer: AnswerSurface, odds: float, above: float, label: Label
    ) -> None:
        """Learn a label of an answer; ``odds`` are all that its prompt predicts."""
        row = self._row(model, answer, above)
        own = self.own[model]
        added = np.array([float(self.shared.mean @ row), float(own.mean @ row)])
        self.trust.charge(odds, added, label)
        guess = logistic(odds + float(added.sum()))
        information = label.weight * max(guess * (1.0 - guess), LEAST_INFORMATION)
        if information > 0.0:
            parts = [Observed(self.shared, row), Observed(own, row)]
            observe(parts, label.residual(guess), information)
        self._weigh()

    def revise(self, model: int, answer: AnswerSurface, above: float, difference: float) -> None:
        """Learn a second verdict; ``difference`` is its residual minus that of the one it
        replaces. The experts' charges stay."""
        row = self._row(model, answer, above)
        correct([Observed(self.shared, row), Observed(self.own[model], row)], difference)
        self._weigh()

    def compare(self, first: int, model: int, surprise: float, missed: Label) -> None:
        """Learn how alike two models are: ``surprise`` is what the first one's answer showed, and
        ``missed`` the label of the other minus its prediction; both in deviations of a label."""
        row = np.array([1.0, surprise, missed.value, surprise**2, surprise * missed.value])
        self.pairs[first, model] += missed.weight * row

    def judged(self, turn: Turn, missed: Label) -> None:
        """Learn by how much a replaced answer, or the one given instead, was ``missed``: its label
        minus what was predicted. Both are chosen by the predictions, so they err to one side."""
        if turn is Turn.ONLY:
            return
        place = 0 if turn is Turn.REPLACED else 1
        self.missed[place] *= math.exp(-missed.weight / MISSED_MEMORY)
        self.missed[place] += missed.weight, missed.weight * missed.value

    def settle(self) -> None:
        """Compute the spread again, for the plans from now on."""
        if not self.read.any():
            return
        scores = np.zeros_like(self.spread.scores)
        for model, count in enumerate(np.minimum(self.read, KEPT).tolist()):
            if count:
                kept = self.recent[model, :count]
                rows = self._rows(model, kept[:, :-1], kept[:, -1:])
                scores[model] = np.quantile(rows @ self._weights[model], QUANTILES)
        weight, x, y, xx, xy = np.moveaxis(self.pairs, -1, 0)
        weight = np.maximum(weight, 1e-9)
        slope = LIKENESS_PRIOR * LIKENESS + xy - x * y / weight
        slope /= LIKENESS_PRIOR + np.maximum(xx - x * x / weight, 0.0)
        first, then = self.missed[:, 1] / (self.missed[:, 0] + MISSED_PRIOR)
        doubt = MARGIN * MISSED_PRIOR / (float(self.missed[1, 0]) + MISSED_PRIOR)
        margin = np.array([max(float(first - then) + doubt, 0.0)])
        evidence = np.array([self.trust.evidence])
        self.spread = Spread(scores, np.clip(slope, 0.0, MOST_LIKE), margin, evidence)

    def doubt(self, model: int) -> None:
        """Let a model that has changed be learned anew."""
        self.own[model].doubt()

    def add(self) -> None:
        """Add an unknown model after the others."""
        models = len(self.own) + 1
        grown = AnswerHeads(models)
        for name in _ARRAYS:
            new, old = map(attrgetter(name), (grown, self))
            new[tuple(slice(size) for size in old.shape)] = old
            _set(self, name, new)
        self.own.append(Belief(WIDTH, OWN))
        self.spread = self.spread._replace(
            scores=grown.spread.scores, likeness=grown.spread.likeness
        )
        self._weigh()
        self.settle()

    def remove(self, model: int) -> None:
        """Forget a model; those after it move up."""
        del self.own[model]
        for name in _ARRAYS:
            kept = np.delete(attrgetter(name)(self), model, axis=0)
            _set(self, name, np.delete(kept, model, axis=1) if name in _SQUARE else kept)
        scores, likeness = (np.delete(each, model, axis=0) for each in self.spread[:2])
        likeness = np.delete(likeness, model, axis=1)
        self.spread = self.spread._replace(scores=scores, likeness=likeness)
        self._weigh()
        self.settle()

    def arrays(self) -> Arrays:
        """Return everything learned; loading it continues exactly."""
        beliefs = {f"answer_{place}": each.numbers() for place, each in enumerate(self._beliefs)}
        return {**beliefs, **self._others(_ARRAYS)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for place, belief in enumerate(self._beliefs):
            belief.load(arrays[f"answer_{place}"])
        self._load_others(_ARRAYS, arrays)

    def _others(self, names: tuple[str, ...]) -> Arrays:
        found = {f"answer_{name}": attrgetter(name)(self) for name in names}
        spread = {f"answer_{name}": array for name, array in self.spread._asdict().items()}
        return {**found, **spread, "answer_losses": self.trust.losses, "answer_missed": self.missed}

    def _load_others(self, names: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]) -> None:
        for name in names:
            _set(self, name, arrays[f"answer_{name}"].copy())
        self.spread = Spread(*(arrays[f"answer_{name}"].copy() for name in Spread._fields))
        self.trust.load(arrays["answer_losses"])
        self.missed = arrays["answer_missed"].copy()
        self._weigh()

    @property
    def _beliefs(self) -> list[Belief]:
        return [self.shared, *self.own]

    def _weigh(self) -> None:
        """Combine the shared head and each model's own, as far as they are trusted."""
        shared, own = self.trust.of_heads.tolist()
        self._weights = [shared * self.shared.mean + own * each.mean for each in self.own]

    def _row(self, model: int, answer: AnswerSurface, above: float) -> Vector:
        at = np.array([above])
        return self._rows(model, self.usual.difference(model, answer, at), at)

    def _rows(self, model: int, found: Array, above: Array) -> Vector:
        """Return the heads' input, shape (..., WIDTH): the differences ``found`` from the usual,
        their product with the prompt's log-odds ``above`` the rate's, and a ramp either way, from
        its usual height; 0 for a number that is not known."""
        at = np.minimum(np.maximum(above, -LOGIT), LOGIT) / LOGIT
        ramps = _ramps(found) - self.usual.ramps[model]
        rows = np.concatenate((found, at * found, ramps), axis=-1, dtype=np.float32)
        rows[np.isnan(rows)] = 0.0
        return rows


def _ramps(difference: Array) -> Array:
    """Return what of a difference lies beyond the knee, above and below, shape (..., 2 COUNT)."""
    high, low = np.maximum(difference - KNEE, 0.0), np.maximum(-difference - KNEE, 0.0)
    return np.concatenate((high, low), axis=-1)


Chances = float | NDArray[np.float64]


def moved(
    chance: Chances, first: Chances, shown: Chances, likeness: Chances
) -> NDArray[np.float64]:
    """Compute a model's chance once another's answer is read, which moved that one's own chance
    from ``first`` to ``shown``: by ``likeness`` of its surprise, in deviations of a label. The
    shapes are broadcast."""
    mine, others = np.clip(chance, EDGE, 1.0 - EDGE), np.clip(first, EDGE, 1.0 - EDGE)
    scale = np.sqrt(mine * (1.0 - mine) / (others * (1.0 - others)))
    return np.asarray(np.clip(mine + likeness * scale * (shown - first), EDGE, 1.0 - EDGE))


_VIEW = ("usual.lines", "usual.variance", "usual.ramps")
_SQUARE = ("pairs",)
_ARRAYS = (*_VIEW, "usual.moments", "usual.sums", "usual.counts", "recent", "read", *_SQUARE)


def _set(heads: AnswerHeads, name: str, array: NDArray[Any]) -> None:
    owner, _, field = name.rpartition(".")
    setattr(heads.usual if owner else heads, field, array)
