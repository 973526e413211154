"""The sessions that are simulated, and the models that could serve them: assumptions, all of them.

The command prints them. Prices in dollars are those of LiteLLM's price map, as a test makes sure.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from litellm_messplus.core.line import CACHE_SECONDS, VLLM_SECONDS
from litellm_messplus.costs.price import Price

MILLION = 1e-6


@dataclass(frozen=True, slots=True)
class Model:
    """A model: the higher its ``skill``, the more difficult the tasks that it can do."""

    name: str
    price: Price
    skill: float


@dataclass(frozen=True, slots=True)
class SimulatedZoo:
    """Models by rising cost; ``cache_seconds`` is how long a prompt stays warm."""

    name: str
    unit: str
    models: tuple[Model, ...]
    cache_seconds: float = CACHE_SECONDS


def _dollars(read: float, cached: float, answered: float, **more: float) -> Price:
    """Make a price of USD for a million tokens; ``written`` if writing to the cache is charged."""
    written = more.get("written", read)
    return Price(
        read * MILLION,
        answered * MILLION,
        cached_discount=(read - cached) * MILLION,
        written_surcharge=(written - read) * MILLION,
        cached_from=more.get("cached_from", 0.0),
    )


def _joules(read: float, written: float) -> Price:
    """Make a price of joules for each token; a cached one takes a hundredth, which is a guess."""
    return Price(read, written, cached_discount=0.99 * read)


ZOOS: Mapping[str, SimulatedZoo] = {
    "anthropic": SimulatedZoo(
        "anthropic",
        "USD",
        (
            Model(
                "claude-haiku-4-5", _dollars(1.0, 0.1, 5.0, written=1.25, cached_from=4_096), 0.4
            ),
            Model(
                "claude-sonnet-4-5", _dollars(3.0, 0.3, 15.0, written=3.75, cached_from=1_024), 1.2
            ),
            Model(
                "claude-opus-4-5", _dollars(5.0, 0.5, 25.0, written=6.25, cached_from=4_096), 1.8
            ),
        ),
    ),
    "openai": SimulatedZoo(
        "openai",
        "USD",
        (
            Model("gpt-5-mini", _dollars(0.25, 0.025, 2.0), 0.4),
            Model("gpt-5", _dollars(1.25, 0.125, 10.0), 1.8),
        ),
    ),
    "vllm": SimulatedZoo(
        "vllm",
        "J",
        (Model("small", _joules(0.05, 0.6), 0.4), Model("large", _joules(0.4, 4.0), 1.8)),
        VLLM_SECONDS,
    ),
}


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumptions about sessions. Gaps and lengths are lognormal, with these medians and
    deviations of the logarithm. Difficulty has mean 0 and deviation 1; what a turn shows of it is
    ``noise`` off."""

    median_turns: float = 20.0
    turns_deviation: float = 0.862
    prefix_tokens: int = 8_000
    growth_tokens: int = 675
    answer_tokens: int = 250
    loop_calls: float = 8.0
    loop_gap: float = 6.0
    loop_gap_deviation: float = 0.5
    user_gap: float = 90.0
    user_gap_deviation: float = 1.0
    noise: float = 1.0
    slope: float = 1.5
    critical_steps: int = 1


@dataclass(frozen=True, slots=True)
class Session:
    """A session: ``at`` is when each turn is asked, ``seen`` the difficulty that each shows,
    ``is_user`` where a person spoke: the others are the calls of a tool loop. ``difficulty`` no one
    sees."""

    at: tuple[float, ...]
    seen: tuple[float, ...]
    is_user: tuple[bool, ...]
    difficulty: float

    def __len__(self) -> int:
        return len(self.at)


ALIKE = 4
"""Sessions with the same turns: one shows at first how easy it is, one how difficult, two between.
So that no policy is lucky with the few long ones, which cost most."""


def sessions(count: int, seed: int, assumed: Assumed) -> Iterator[Session]:
    """Draw so many sessions, rounded up to a multiple of ``ALIKE``; the same for the same seed."""
    drawn = np.random.default_rng(seed)
    groups = -(-count // ALIKE)
    shown = math.sqrt(1.0 + assumed.noise**2)
    for place in drawn.permutation(groups):
        spread = assumed.turns_deviation * _normal((place + drawn.random()) / groups)
        turns = max(1, round(assumed.median_turns * math.exp(spread)))
        at, is_user = _course(turns, drawn, assumed)
        share = drawn.random()
        for other in range(ALIKE):
            first = shown * _normal((share + other / ALIKE) % 1.0)
            difficulty = (first + shown * assumed.noise * drawn.standard_normal()) / shown**2
            later = difficulty + assumed.noise * drawn.standard_normal(turns - 1)
            yield Session(at, (first, *later.tolist()), is_user, float(difficulty))


def _course(
    turns: int, drawn: np.random.Generator, assumed: Assumed
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Draw when each turn is asked, and which are a user's."""
    is_user = drawn.random(turns) < 1.0 / assumed.loop_calls
    is_user[0] = True
    median = np.where(is_user, assumed.user_gap, assumed.loop_gap)
    deviation = np.where(is_user, assumed.user_gap_deviation, assumed.loop_gap_deviation)
    gaps = median * np.exp(deviation * drawn.standard_normal(turns))
    return tuple(np.cumsum(gaps).tolist()), tuple(is_user.tolist())


def _normal(share: float) -> float:
    """Compute what so large a share of all standard normal draws is below."""
    return NormalDist().inv_cdf(min(max(share, 1e-9), 1.0 - 1e-9))


# Whether a model satisfies.


def satisfies(model: Model, difficulty: float, slope: float) -> float:
    """Compute the probability that it does a session's critical step."""
    return _logistic(model.skill - slope * difficulty)


def predicted(model: Model, seen: float, assumed: Assumed) -> float:
    """Predict the same, of all difficulties that show like this, as a calibrated predictor does."""
    variance = assumed.noise**2
    mean, left = seen / (1.0 + variance), variance / (1.0 + variance)
    flatter = math.sqrt(1.0 + math.pi * assumed.slope**2 * left / 8.0)
    return _logistic((model.skill - assumed.slope * mean) / flatter)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))
