"""What the calls of a zoo usually find in prompt caches, and what staying with a model costs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from litellm_messplus.conversations.line import Hits, Line, Place
from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN, RecentMean, expected
from litellm_messplus.runtime.bounded import Bounded

# What it costs to stay with a model: this call, and those that are still to come.
#
# now = this call, of which what is warm is read from the cache and the rest is written there hold
# = now + R calls that each read the prompt so far, write what it grew by, and answer
#
# R is how many calls usually follow. A call elsewhere finds nothing warm, so switching is in
# ``now``; that a long session makes a cheap model cheaper still is in R.


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
"""Powers of two: from 2,048 calls on, all are in one."""


class Remaining:
    """Calls that followed after the k-th of a line, as running means by the logarithm of k, for
    each candidate: a small model may need 12 calls where a large one needs 47."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._means = {name: [RecentMean(0.0) for _ in range(BUCKETS)] for name in candidates}

    def meet(self, candidates: Collection[str]) -> None:
        """Have these candidates: new ones know nothing, and those that are not among them are
        forgotten."""
        own = self._means
        self._means = {
            name: own.get(name) or [RecentMean(0.0) for _ in range(BUCKETS)] for name in candidates
        }

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


# What the calls of a zoo usually find in their caches, and how its lines usually grow.
#
# Running means of one worker, from the calls that it served: they are no part of the log's fold,
# as what is warm itself is not, for both are gone within minutes.

DEPLOYMENTS = 1_000
"""Deployments whose hits are remembered, those used last."""
STEP = 0.05
"""Step to which the usual part of a cost is rounded: where it changes, the plan over recent prompts
is worked out anew."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The outlook of a request at a candidate: it finds ``warm`` tokens of its prompt there, the
    ``share`` of the others is stored, and ``remaining`` calls follow, each with a prompt that is
    ``growth`` tokens longer."""

    warm: float = 0.0
    share: float = 0.0
    remaining: float = 0.0
    growth: float = 0.0

    def cost(
        self, price: Price, prompt_tokens: float, completion_tokens: float, seconds: float
    ) -> float:
        """Expect the cost of a request, in the mean over it and those that come after it."""
        turn = Turn(prompt_tokens, self.growth, completion_tokens, seconds=seconds)
        return per_request(hold(price, turn, self.warm, self.remaining, self.share), self.remaining)


class Habits:
    """The running means of one zoo. Before it has seen a call, it expects what a router without
    them would: nothing is warm, and nothing comes after."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._hits: Bounded[str, Hits] = Bounded(DEPLOYMENTS)
        self._cold = {name: RecentMean(0.0) for name in candidates}
        self._stored = {name: RecentMean(0.0) for name in candidates}
        self._paid = {name: RecentMean(0.0) for name in candidates}
        self._growth = RecentMean(0.0)
        self._density = RecentMean(CHARACTERS_PER_TOKEN)
        self._remaining = Remaining(candidates)
        self._ended = 0

    def meet(self, candidates: Collection[str]) -> None:
        """Have these candidates, where they are others than before: models come and go."""
        if len(candidates) == len(self._cold) and all(name in self._cold for name in candidates):
            return
        for means in (self._cold, self._stored, self._paid):
            for name in [each for each in means if each not in candidates]:
                del means[name]
            for name in candidates:
                means.setdefault(name, RecentMean(0.0))
        self._remaining.meet(candidates)

    def __len__(self) -> int:
        """Count the deployments that are remembered."""
        return len(self._hits)

    def share_found(self, deployment: str) -> float:
        """Return the share that a deployment finds of what it had read before."""
        found = self._hits.get(deployment)
        return 1.0 if found is None else found.share

    def tokens_since(self, characters: int) -> float:
        """Expect how many tokens a line has grown by. A whole prompt has others too, of the
        descriptions of its tools, which tell nothing of that."""
        return characters / self._density.value

    def called(
        self, place: Place, deployment: str, usage: Usage, price: Price, *, expected: float | None
    ) -> None:
        """Learn from a call of the line's candidate. ``expected`` are the tokens that the call
        before it there had read, where they were still warm; None where nothing was."""
        line, name = place.line, place.line.candidate
        if name is None or name not in self._cold or usage.prompt_tokens <= 0:
            return
        if expected is None:
            self._cold[name].add(usage.cached_tokens / usage.prompt_tokens)
        else:
            self._of(deployment).observe(expected, usage.cached_tokens)
        unread = usage.prompt_tokens - usage.cached_tokens
        if price.written_surcharge > 0.0 and unread > 0:
            self._stored[name].add(usage.written_tokens / unread)
        since, tokens = place.characters - line.characters, usage.prompt_tokens - line.prompt_tokens
        if line.prompt_tokens and since > 0 and tokens > 0:
            self._growth.add(tokens)
            self._density.add(since / tokens)
        plain = price.of(float(usage.prompt_tokens), float(usage.completion_tokens))
        if plain > 0.0:
            self._paid[name].add(price.of_usage(usage) / plain)

    def ended(self, line: Line) -> None:
        """Learn how long a line was that nobody goes on with."""
        if line.candidate in self._cold:
            self._ended += 1
            self._remaining.ended(str(line.candidate), line.requests, line.held_from)

    def usual_part(self, candidate: str) -> float:
        """Return the part of the cost without a cache that calls usually cost."""
        paid = self._paid[candidate]
        return STEP * round(paid.value / STEP) if paid.count else 1.0

    def ahead(
        self, candidates: Sequence[str], warm: Mapping[str, float], line: Line, tokens: float
    ) -> dict[str, Ahead]:
        """Expect what a request of so many tokens finds at each candidate. Of a line that begins,
        what all prompts begin with may be warm, and nothing is taken to come after, before lines
        have ended."""
        calls = max(line.requests, 1)
        knows = self._ended > 0 or calls > 1
        after = self._remaining.after(calls) if knows else {}
        return {
            name: Ahead(
                warm.get(name) or self._cold[name].value * tokens,
                line.stored if line.stored is not None else self._stored[name].value,
                after.get(name, 0.0),
                self._growth.value,
            )
            for name in candidates
        }

    def _of(self, deployment: str) -> Hits:
        return self._hits.newest(deployment, Hits)
