"""What the prompt adds to each model's running mean, in log-odds, as far as it is trusted.

Two readers look at the surface of the prompt. Each has a head that all models share (a prompt that
is hard for one is hard for the others, so a label of any model teaches all of them) and one per
model (the small model fails at long numbers, the large one does not). The cautious reader assumes
that prompts hardly differ, the bold one expects differences of many nats; on a stream from one
benchmark the first is right, on a mixed one the second. A third head, shared by all models, reads
the encoder's features, and learns what the surface leaves unexplained.

The trust in each follows from its own predictions: experts that use none, half or all of a head are
weighted by exp(-discounted log-loss) of their predictions before each label was known. Using more
begins with a charge, so that a stream on which prompts carry no information never pays for reading.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.head import Belief, Label, Observed, Vector, correct, observe
from litellm_messplus.core.prompt import Average, Combined, Prompt, Rows, projection
from litellm_messplus.core.surface import WIDTH
from litellm_messplus.core.trust import LEAST_INFORMATION, Trust, logistic

READERS = ((0.03, 0.015), (0.45, 0.22))
"""Prior variances of the shared head and of each model's own: the cautious reader, the bold one."""
WORDS = 0.2
"""Prior variance of the head on the encoder's features."""
SURFACE_SCALES = ((0.5, 0.0), (1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.5, 0.5))
"""Share of a reader's shared head, and of its own heads, that an expert uses."""
WORD_SCALES = (0.0, 0.5, 1.0)


def _scales() -> list[tuple[float, ...]]:
    """Return the share of each head that each expert uses: the shared and the own one of each
    reader, then the words'. The first uses none."""
    rows: list[tuple[float, ...]] = [(0.0,) * (2 * len(READERS))]
    for place in range(len(READERS)):
        before, after = (0.0, 0.0) * place, (0.0, 0.0) * (len(READERS) - place - 1)
        rows += [(*before, *scales, *after) for scales in SURFACE_SCALES]
    return [(*row, words) for row, words in product(rows, WORD_SCALES)]


class Reader:
    """A shared head, and one per model, over the surface."""

    def __init__(self, models: int, shared: float, own: float) -> None:
        self.shared = Belief(WIDTH, shared)
        self.own = [Belief(WIDTH, own) for _ in range(models)]
        self._variance = own

    def add(self) -> None:
        """Add an untrained head for one more model."""
        self.own.append(Belief(WIDTH, self._variance))

    def added(self, model: int, row: Vector) -> tuple[float, float]:
        """Return what the shared head and the model's own add, in log-odds."""
        return float(self.shared.mean @ row), float(self.own[model].mean @ row)

    def parts(self, model: int, row: Vector) -> tuple[Observed, Observed]:
        return Observed(self.shared, row), Observed(self.own[model], row)

    @property
    def beliefs(self) -> list[Belief]:
        return [self.shared, *self.own]


class PromptHeads:
    """The heads of all models of a zoo; their order is that of ``shifts``."""

    def __init__(self, models: int, dimension: int) -> None:
        self.models = models
        self.average = Average(dimension)
        self.readers = [Reader(models, shared, own) for shared, own in READERS]
        self.words = Belief(projection(dimension).width, WORDS)
        self.trust = Trust(_scales())
        self._combine()

    @property
    def evidence(self) -> float:
        """The evidence for reading the prompt, in nats."""
        return self.trust.evidence

    def shifts(self, prompt: Prompt) -> Vector:
        """Predict what the prompt adds to each model's log-odds, shape (models,), weighted by
        trust."""
        return self.combined.of(prompt)

    def learn(self, model: int, prompt: Prompt, base: float, label: Label) -> None:
        """Learn a label of one model; ``base`` is its expectation on the average prompt, in
        log-odds."""
        self.average.count(prompt)
        rows = self.average.difference(prompt)
        added = self._added(model, rows)
        trust = self.trust.of_heads
        self.trust.charge(base, added, label)
        surface, words = float(trust[:-1] @ added[:-1]), float(added[-1])
        trusted_words = float(trust[-1]) * words
        self._observe([Observed(self.words, rows.words)], base + surface + words, label)
        for place, reader in enumerate(self.readers):
            expected = base + float(added[2 * place : 2 * place + 2].sum()) + trusted_words
            self._observe(reader.parts(model, rows.surface), expected, label)
        self._combine()

    def revise(self, model: int, prompt: Prompt, difference: float) -> None:
        """Learn a second verdict; ``difference`` is its residual minus that of the one it replaces.
        The experts' charges stay."""
        rows = self.average.difference(prompt)
        correct([Observed(self.words, rows.words)], difference)
        for reader in self.readers:
            correct(reader.parts(model, rows.surface), difference)
        self._combine()

    def doubt(self, model: int) -> None:
        """Let a model that has changed be learned anew: its own heads are as unsure as at first."""
        for reader in self.readers:
            reader.own[model].doubt()

    def add(self) -> None:
        """Add an unknown model after the others."""
        self.models += 1
        for reader in self.readers:
            reader.add()
        self._combine()

    def remove(self, model: int) -> None:
        """Forget a model; those after it move up. What it taught the shared heads stays."""
        self.models -= 1
        for reader in self.readers:
            del reader.own[model]
        self._combine()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything learned; loading it continues exactly."""
        beliefs = {f"belief_{place}": each.numbers() for place, each in enumerate(self._beliefs)}
        return {**beliefs, **self._others()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for place, belief in enumerate(self._beliefs):
            belief.load(arrays[f"belief_{place}"])
        self._load_others(arrays)

    def _others(self) -> dict[str, NDArray[Any]]:
        """Return what was learned in addition to the beliefs."""
        average = {f"average_{name}": array for name, array in self.average.arrays().items()}
        return {**average, "losses": self.trust.losses}

    def _load_others(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.average.load({name: arrays[f"average_{name}"] for name in self.average.arrays()})
        self.trust.load(arrays["losses"])
        self._combine()

    @property
    def _beliefs(self) -> Sequence[Belief]:
        return [self.words, *(belief for reader in self.readers for belief in reader.beliefs)]

    def _added(self, model: int, rows: Rows) -> NDArray[np.float64]:
        each = [added for reader in self.readers for added in reader.added(model, rows.surface)]
        return np.array([*each, float(self.words.mean @ rows.words)])

    @staticmethod
    def _observe(parts: Sequence[Observed], expected: float, label: Label) -> None:
        guess = logistic(expected)
        information = label.weight * max(guess * (1.0 - guess), LEAST_INFORMATION)
        if information > 0.0:  # a label may have no weight
            observe(parts, label.residual(guess), information)

    def _combine(self) -> None:
        """Combine all heads into one, weighted by trust."""
        *surface, words = self.trust.of_heads.astype(np.float32)
        weights: Vector = np.zeros((self.models, WIDTH), np.float32)
        for place, reader in enumerate(self.readers):
            shared, own = surface[2 * place : 2 * place + 2]
            weights += shared * reader.shared.mean
            for row, belief in zip(weights, reader.own, strict=True):
                row += own * belief.mean
        self.combined = Combined(weights, words * self.words.mean, self.average)


# What the prompt predicts of the length of each model's answer, and so about its cost and seconds.
#
# Why it exists: if one request costs several times as much as another, a satisfied request is
# bought most cheaply where the step to the better model is small. Every call shows a length,
# labelled or not, so this is learned far sooner than satisfaction. Models differ: one writes three
# lines of working for a sum, another the sum. So there is a head that all share, and one per
# model. Left out (10 seeds): tiny 0.60 instead of 0.53 times the hindsight mix.

LARGEST_SHIFT = 2.0
"""Largest log-ratio of an answer's length to its model's mean, either way; and largest surprise."""
LENGTH_SHARED, LENGTH_OWN, LENGTH_WORDS = 0.05, 0.02, 0.05
"""Prior variances of the weights, in nats squared."""
NOISE, LEAST_NOISE = 0.25, 0.01
"""Variance of the log of an answer's length that prompts do not explain: initial, and least."""
NOISE_SHARE = 0.02
"""Weight of one answer in the running mean of that variance."""


class LengthHeads:
    """The length of an answer in tokens, as a multiple of each model's running mean."""

    def __init__(self, models: int, dimension: int) -> None:
        self.average = Average(dimension)
        self.shared = Belief(WIDTH, LENGTH_SHARED)
        self.words = Belief(projection(dimension).width, LENGTH_WORDS)
        self.own = [Belief(WIDTH, LENGTH_OWN) for _ in range(models)]
        self.noise: NDArray[np.float64] = np.full(models, NOISE)
        self._combine()

    def multiples(self, prompt: Prompt) -> list[float]:
        """Predict each model's answer as a multiple of its answer to an average prompt."""
        return [_multiple(shift) for shift in self._combined.of(prompt).tolist()]

    def multiples_of_many(self, surface: Vector, words: Vector) -> NDArray[np.float64]:
        """Predict the same for several prompts, (prompts, WIDTH) and (prompts, words), neither
        relative to the average: shape (prompts, models)."""
        shifts = self._combined.of_many(surface - self.average.surface, words - self.average.words)
        multiples: NDArray[np.float64] = np.exp(
            np.clip(shifts, -LARGEST_SHIFT, LARGEST_SHIFT), dtype=np.float64
        )
        return multiples

    def learn(self, model: int, prompt: Prompt, multiple: float) -> None:
        """Learn from an answer of ``multiple`` times its model's mean length."""
        if multiple <= 0.0:
            return
        self.average.count(prompt)
        rows = self.average.difference(prompt)
        surprise = math.log(multiple) - self._shift(model, rows)
        surprise = min(max(surprise, -LARGEST_SHIFT), LARGEST_SHIFT)
        parts = [
            Observed(self.shared, rows.surface),
            Observed(self.words, rows.words),
            Observed(self.own[model], rows.surface),
        ]
        noise = float(self.noise[model])
        explained = observe(parts, surprise / noise, 1.0 / noise)
        noise += NOISE_SHARE * (max(surprise * surprise - explained, LEAST_NOISE) - noise)
        self.noise[model] = noise
        self._combine()

    def add(self) -> None:
        """Add an unknown model after the others."""
        self.own.append(Belief(WIDTH, LENGTH_OWN))
        self.noise = np.append(self.noise, NOISE)
        self._combine()

    def remove(self, model: int) -> None:
        """Forget a model; those after it move up."""
        del self.own[model]
        self.noise = np.delete(self.noise, model)
        self._combine()

    def arrays(self) -> dict[str, NDArray[Any]]:
        beliefs = {f"length_{place}": each.numbers() for place, each in enumerate(self._beliefs())}
        average = {f"length_{name}": array for name, array in self.average.arrays().items()}
        return {**beliefs, **average, "length_noise": self.noise}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for place, belief in enumerate(self._beliefs()):
            belief.load(arrays[f"length_{place}"])
        self.average.load({name: arrays[f"length_{name}"] for name in self.average.arrays()})
        self.noise = arrays["length_noise"].copy()
        self._combine()

    def _beliefs(self) -> list[Belief]:
        return [self.shared, self.words, *self.own]

    def _combine(self) -> None:
        """Combine shared and own heads into one."""
        rows = [self.shared.mean + own.mean for own in self.own]
        weights: Vector = np.stack(rows) if rows else np.zeros((0, WIDTH), np.float32)
        self._combined = Combined(weights, self.words.mean.copy(), self.average)

    def _shift(self, model: int, rows: Rows) -> float:
        words = float(self.words.mean @ rows.words)
        return float(self._combined.weights[model] @ rows.surface) + words


def _multiple(shift: float) -> float:
    if shift > LARGEST_SHIFT:
        shift = LARGEST_SHIFT
    elif shift < -LARGEST_SHIFT:
        shift = -LARGEST_SHIFT
    return math.exp(shift)
