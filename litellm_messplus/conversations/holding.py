"""What it costs to stay with a model: this call, and those that are still to come.

    now  = this call, of which what is warm is read from the cache and the rest is written there
    hold = now + R calls that each read the prompt so far, write what it grew by, and answer

R is how many calls usually follow. A call elsewhere finds nothing warm, so switching is in ``now``;
that a long session makes a cheap model cheaper still is in R.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from litellm_messplus.costs.price import Price
from litellm_messplus.costs.token_estimator import RecentMean, expected


@dataclass(frozen=True, slots=True)
class Turn:
    """A call that is to be made: its prompt, what each later prompt will have more, the answer.
    ``unmarked`` tokens at the prompt's end are not stored: they come after what the client marked
    for the cache. ``seconds`` are how long it takes."""

    prompt_tokens: float
    growth: float
    completion_tokens: float
    unmarked: float = 0.0
    seconds: float = 0.0


def now(price: Price, turn: Turn, warm_tokens: float, share: float = 1.0) -> float:
    """Compute the cost of this call at a deployment that has so many tokens of its prompt in its
    cache, and stores that ``share`` of the others: none where clients mark nothing for the
    cache."""
    cached = min(warm_tokens, turn.prompt_tokens)
    is_cached = turn.prompt_tokens >= price.cached_from
    others = max(turn.prompt_tokens - cached - turn.unmarked, 0.0)
    return price.of(
        turn.prompt_tokens,
        turn.completion_tokens,
        cached_tokens=cached,
        written_tokens=share * others if is_cached else 0.0,
        seconds=turn.seconds,
    )


def hold(
    price: Price, turn: Turn, warm_tokens: float, remaining: float, share: float = 1.0
) -> float:
    """Compute the cost of this call and of the ``remaining`` ones, all there. Each finds that
    ``share`` of the prompt before it in the cache."""
    average = turn.prompt_tokens + turn.growth * (remaining + 1.0) / 2.0
    later = price.within(average)
    stored = share if average >= price.cached_from else 0.0
    each = (
        later.request
        + (later.prompt - stored * later.cached_discount) * (average - turn.growth)
        + (later.prompt + stored * later.written_surcharge) * turn.growth
        + later.completion * turn.completion_tokens
        + later.second * turn.seconds
    )
    return now(price, turn, warm_tokens, share) + remaining * each


# The estimates that a policy is told: in the unit in which alpha counts.


def per_request(held: float, remaining: float) -> float:
    """Divide the cost over the requests, the coming ones included: where alpha counts requests."""
    return held / (1.0 + remaining)


def per_conversation(held: Sequence[float], typical: Sequence[float]) -> list[float]:
    """Divide what a conversation costs with each model by what it costs on average: where alpha
    counts conversations. Long ones cost more with every model, and at plain costs would be
    left to the cheapest: they are the ones that are then not satisfied.

    ``typical`` is what an average conversation costs with each; so the unit is its own.
    """
    average = sum(held) / len(held)
    scale = sum(typical) / len(typical)
    return [scale * cost / average if average > 0.0 else 0.0 for cost in held]


# How many calls are still to come.

BUCKETS = 12
"""Of powers of two: from 2,048 calls on, all are in one."""


class Remaining:
    """Calls that followed after the k-th of a line, as running means by the logarithm of k, for
    each candidate: a small model may need 12 calls where a large one needs 47."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._means = {name: [RecentMean(0.0) for _ in range(BUCKETS)] for name in candidates}

    def ended(self, candidate: str, calls: int, first: int = 1) -> None:
        """Learn from a line that ended after so many calls, from the ``first`` of them on served by
        the candidate."""
        for bucket, mean in enumerate(self._means[candidate]):
            from_, to = max(2**bucket, first), calls
            if bucket < BUCKETS - 1:
                to = min(2 ** (bucket + 1) - 1, calls)
            if from_ <= to:
                mean.add(calls - (from_ + to) / 2.0)

    def after(self, calls: int) -> dict[str, float]:
        """Estimate for every candidate how many calls follow after so many. For one that has not
        come as far, the others tell; before any has, as many again follow."""
        bucket = min(max(calls, 1).bit_length() - 1, BUCKETS - 1)
        means = [own[bucket] for own in self._means.values()]
        if not any(mean.count for mean in means):
            return dict.fromkeys(self._means, float(calls))
        return dict(zip(self._means, expected(means), strict=True))
