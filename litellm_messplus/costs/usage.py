"""The expected usage of a call, in tokens and seconds, from earlier calls."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CHARACTERS_PER_TOKEN = 4.0
"""Characters per token of English text, until the first call gives a ratio."""
COMPLETION_TOKENS = 100.0
"""Tokens expected of a candidate that has not answered yet."""
SECONDS = 1.0
"""Seconds expected of such a candidate."""
MEMORY = 200
"""Number of calls that a running mean covers, so that it follows a drift."""


@dataclass(slots=True)
class RecentMean:
    """A mean over all values up to ``MEMORY`` of them, an exponential one from there on."""

    value: float
    count: int = 0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / min(self.count, MEMORY)


def expected(means: Sequence[RecentMean]) -> list[float]:
    """Return each value; for a mean without values, the average of those that have some. All
    models of a zoo get the same requests, so their answers are of similar length."""
    known = [mean.value for mean in means if mean.count > 0]
    usual = sum(known) / len(known) if known else None
    return [mean.value if mean.count > 0 or usual is None else usual for mean in means]


@dataclass(slots=True)
class TokenEstimator:
    """The tokens expected of one candidate. A prompt's tokens are estimated from its characters, by
    the ratio in the candidate's own usage: 6 to 10 % off in the median, on code and English.
    Counting 2000 tokens takes 0.3 to 0.7 ms, longer than routing, and few models' tokenizers are
    at hand."""

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
        """Learn from the usage of a call; the token counts of a recorded zoo may be fractional."""
        if prompt_tokens > 0 and prompt_characters > 0:
            self.characters_per_token.add(prompt_characters / prompt_tokens)
        self.prompt_tokens.add(prompt_tokens)
        self.completion_tokens.add(completion_tokens)
        if seconds is not None:
            self.seconds.add(seconds)

    def means(self) -> tuple[RecentMean, ...]:
        """Return all running means, in a fixed order."""
        return self.characters_per_token, self.prompt_tokens, self.completion_tokens, self.seconds


# The duration of a candidate's calls: the share of them that takes longer than a limit.
#
# Why it exists: "at most 5 % of the requests take longer than two seconds" is a promise about the
# tail, and a mean shows nothing of a tail. So the newest calls themselves are kept, as
# logarithms: the duration of each, and the expected length of its answer as a multiple of the usual
# one. An answer of twice the expected length takes between once (waiting for the first token is
# all) and twice as long (every token counts); the ``elasticity`` between the two is fitted to the
# calls. What the prompt does not explain of the length stays in the spread.

KEPT = 200
"""Newest calls kept per candidate, so that a model that becomes faster is noticed."""
UNKNOWN = 4.0
"""Weight, in calls, of the prior that a candidate just holds the limit, so that an unknown one is
neither barred nor preferred."""
RIDGE = 1.0
"""Weight of the prior that the elasticity is 0, in squared nats of spread in expected length."""

Vector = NDArray[np.float64]


class Durations:
    """The newest calls of one candidate: logarithms of expected length and of seconds."""

    def __init__(self, lengths: Sequence[float] = (), seconds: Sequence[float] = ()) -> None:
        self._lengths: deque[float] = deque(lengths, maxlen=KEPT)
        self._seconds: deque[float] = deque(seconds, maxlen=KEPT)
        self._fitted: tuple[float, list[float]] | None = None

    def __len__(self) -> int:
        """Count the kept calls."""
        return len(self._seconds)

    def add(self, length: float, seconds: float) -> None:
        """Learn from a call whose answer was expected to be ``length`` times as long as usual. A
        call of zero seconds was not measured."""
        if length > 0.0 and seconds > 0.0:
            self._lengths.append(math.log(length))
            self._seconds.append(math.log(seconds))
            self._fitted = None

    @property
    def elasticity(self) -> float:
        """The percentage by which a call takes longer if its answer is expected 1 % longer."""
        return self._fit()[0]

    def late(self, length: float, limit: float, usual: float) -> float:
        """Predict the probability that a call takes longer than ``limit`` seconds. ``usual`` is the
        prior for a candidate without calls."""
        elasticity, rest = self._fit()
        below = bisect_right(rest, math.log(limit) - elasticity * math.log(max(length, 1e-9)))
        return (len(rest) - below + UNKNOWN * usual) / (len(rest) + UNKNOWN)

    def tail(self, length: float, share: float) -> float:
        """Predict the seconds that at most a ``share`` of such calls exceeds; 0 if no call is
        known."""
        elasticity, rest = self._fit()
        if not rest:
            return 0.0
        at = rest[len(rest) - 1 - int(share * len(rest))]
        return math.exp(at + elasticity * math.log(max(length, 1e-9)))

    def late_of_many(self, lengths: Vector, limit: float, usual: float) -> Vector:
        """Predict the same of several calls."""
        elasticity, rest = self._fit()
        at = math.log(limit) - elasticity * np.log(np.maximum(lengths, 1e-9))
        above = len(rest) - np.searchsorted(np.array(rest), at, side="right").astype(np.float64)
        found: Vector = (above + UNKNOWN * usual) / (len(rest) + UNKNOWN)
        return found

    def plain(self) -> list[list[float]]:
        """Return the data as JSON."""
        return [list(self._lengths), list(self._seconds)]

    def _fit(self) -> tuple[float, list[float]]:
        """Fit the elasticity, and return it with the residual of each call's seconds, rising."""
        if self._fitted is None:
            lengths, seconds = np.array(self._lengths), np.array(self._seconds)
            slope = 0.0
            if len(seconds):
                apart = lengths - lengths.mean()
                slope = float(apart @ (seconds - seconds.mean()) / (apart @ apart + RIDGE))
            elasticity = min(max(slope, 0.0), 1.0)
            self._fitted = elasticity, np.sort(seconds - elasticity * lengths).tolist()
        return self._fitted
