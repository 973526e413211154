"""What a call will use, tokens and seconds, from what calls used before."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CHARACTERS_PER_TOKEN = 4.0
"""Characters per token of an English text, until the first call shows otherwise."""
COMPLETION_TOKENS = 100.0
"""Tokens expected of a candidate that has not answered yet."""
SECONDS = 1.0
"""Seconds expected of such a candidate."""
MEMORY = 200
"""Calls that a running mean looks back on, so that it follows a drift."""


@dataclass(slots=True)
class RecentMean:
    """A mean over all values until ``MEMORY`` of them, an exponential one from there on."""

    value: float
    count: int = 0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / min(self.count, MEMORY)


def expected(means: Sequence[RecentMean]) -> list[float]:
    """Return the value of each; for one that has seen nothing yet, the mean of the others that
    have. All models of a zoo are asked the same, and one that says it in a hundred tokens is not
    alone."""
    known = [mean.value for mean in means if mean.count > 0]
    usual = sum(known) / len(known) if known else None
    return [mean.value if mean.count > 0 or usual is None else usual for mean in means]


@dataclass(slots=True)
class TokenEstimator:
    """The tokens expected of one candidate. A prompt's tokens are estimated from its characters, by
    the ratio that the candidate's own usage showed: 6 to 10 % off in the median, on code and
    English. Counting 2000 tokens takes 0.3 to 0.7 ms, longer than routing, and few models'
    tokenizers are at hand."""

    characters_per_token: RecentMean = field(
        default_factory=lambda: RecentMean(CHARACTERS_PER_TOKEN)
    )
    prompt_tokens: RecentMean = field(default_factory=lambda: RecentMean(0.0))
    completion_tokens: RecentMean = field(default_factory=lambda: RecentMean(COMPLETION_TOKENS))
    seconds: RecentMean = field(default_factory=lambda: RecentMean(SECONDS))

    def observe(
        self,
        prompt_characters: int,
        prompt_tokens: float,
        completion_tokens: float,
        seconds: float | None = None,
    ) -> None:
        """Learn from what a call used; the tokens of a recorded zoo's calls need not be whole."""
        if prompt_tokens > 0 and prompt_characters > 0:
            self.characters_per_token.add(prompt_characters / prompt_tokens)
        self.prompt_tokens.add(prompt_tokens)
        self.completion_tokens.add(completion_tokens)
        if seconds is not None:
            self.seconds.add(seconds)

    def tokens_of(self, prompt_characters: int) -> float:
        """Estimate the tokens of a prompt."""
        return prompt_characters / self.characters_per_token.value

    def means(self) -> tuple[RecentMean, ...]:
        """Return all that is remembered, in a fixed order."""
        return self.characters_per_token, self.prompt_tokens, self.completion_tokens, self.seconds


# How long the calls of a candidate take: what share of them takes longer than a limit.
#
# Why it exists: "at most 5 % of the requests take longer than two seconds" is a promise about the
# tail, and a mean says nothing of a tail. So the newest calls themselves are kept, as logarithms:
# how long each took, and how many times as long as the usual answer its answer was expected to
# be. An answer that is expected to be twice as long takes between once (the wait for the first
# token is all) and twice as long (every token counts); the ``elasticity`` between the two is
# fitted to the calls. What the prompt does not tell of the length stays in the spread.

KEPT = 200
"""Newest calls of a candidate that are kept, so that a model that becomes faster is found out."""
UNKNOWN = 4.0
"""Calls' worth of belief that a candidate just holds the limit, before there are any: it is neither
barred nor preferred."""
RIDGE = 1.0
"""Nats squared of spread in expected length that speak for an elasticity of 0 beforehand."""

Vector = NDArray[np.float64]


class Durations:
    """The newest calls of one candidate: logarithms of expected length and of seconds."""

    def __init__(self, lengths: Sequence[float] = (), seconds: Sequence[float] = ()) -> None:
        self._lengths: deque[float] = deque(lengths, maxlen=KEPT)
        self._seconds: deque[float] = deque(seconds, maxlen=KEPT)
        self._fitted: tuple[float, list[float]] | None = None

    def __len__(self) -> int:
        """Count the calls that are kept."""
        return len(self._seconds)

    def add(self, length: float, seconds: float) -> None:
        """Learn from a call whose answer was expected to be ``length`` times as long as usual. A
        call of no time was not measured."""
        if length > 0.0 and seconds > 0.0:
            self._lengths.append(math.log(length))
            self._seconds.append(math.log(seconds))
            self._fitted = None

    @property
    def elasticity(self) -> float:
        """The percentage that a call takes longer whose answer is expected to be 1 % longer."""
        return self._fit()[0]

    def late(self, length: float, limit: float, usual: float) -> float:
        """Predict the probability that a call takes longer than ``limit`` seconds. ``usual`` is
        believed of a candidate that nobody has called yet."""
        elasticity, rest = self._fit()
        below = bisect_right(rest, math.log(limit) - elasticity * math.log(max(length, 1e-9)))
        return (len(rest) - below + UNKNOWN * usual) / (len(rest) + UNKNOWN)

    def late_of_many(self, lengths: Vector, limit: float, usual: float) -> Vector:
        """Predict the same of several calls."""
        elasticity, rest = self._fit()
        at = math.log(limit) - elasticity * np.log(np.maximum(lengths, 1e-9))
        above = len(rest) - np.searchsorted(np.array(rest), at, side="right").astype(np.float64)
        found: Vector = (above + UNKNOWN * usual) / (len(rest) + UNKNOWN)
        return found

    def plain(self) -> list[list[float]]:
        """Return it as JSON."""
        return [list(self._lengths), list(self._seconds)]

    def _fit(self) -> tuple[float, list[float]]:
        """Fit the elasticity; with it, what is left of each call's seconds, rising."""
        if self._fitted is None:
            lengths, seconds = np.array(self._lengths), np.array(self._seconds)
            slope = 0.0
            if len(seconds):
                apart = lengths - lengths.mean()
                slope = float(apart @ (seconds - seconds.mean()) / (apart @ apart + RIDGE))
            elasticity = min(max(slope, 0.0), 1.0)
            self._fitted = elasticity, np.sort(seconds - elasticity * lengths).tolist()
        return self._fitted
