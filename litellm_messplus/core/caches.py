"""The share of prompts that calls find in prompt caches, and the cost of staying with a model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from litellm_messplus.core.line import Line, Place
from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN, RecentMean, expected
from litellm_messplus.runtime.bounded import Bounded

# The cost of staying with a model: this call, and those still to come.
#
# now = this call: its warm part is read from the cache, and the rest is written there
# hold = now + R calls that each read the prompt so far, write its growth, and answer
#
# R is the usual number of calls to follow. A call elsewhere finds nothing warm, so switching is in
# ``now``; that a long session makes a cheap model cheaper still is in R.


@dataclass(frozen=True, slots=True)
class Turn:
    """A planned call: its prompt, the ``growth`` of each later prompt in tokens, the answer, and
    its duration."""

    prompt_tokens: float
    growth: float
    completion_tokens: float
    seconds: float = 0.0


def now(price: Price, turn: Turn, warm_tokens: float, share: float = 1.0) -> float:
    """Compute the cost of this call at a deployment that has ``warm_tokens`` of its prompt in its
    cache, and stores a ``share`` of the other tokens: 0 if clients mark nothing for the cache."""
    tokens, cached = turn.prompt_tokens, warm_tokens
    if cached > tokens:
        cached = tokens
    written = share * (tokens - cached) if tokens >= price.cached_from else 0.0
    return price.of(
        tokens,
        turn.completion_tokens,
        cached_tokens=cached,
        written_tokens=written,
        seconds=turn.seconds,
    )


def hold(
    price: Price, turn: Turn, warm_tokens: float, remaining: float, share: float = 1.0
) -> float:
    """Compute the cost of this call and of the ``remaining`` ones at one deployment. Each finds
    that ``share`` of the preceding prompt in the cache."""
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


# The number of calls still to come.

BUCKETS = 12
"""Powers of two: from 2,048 calls on, all share one."""


class Remaining:
    """Numbers of calls that followed the k-th of a line, as running means by the logarithm of k,
    per candidate: a small model may need 12 calls where a large one needs 47."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._means = {name: [RecentMean(0.0) for _ in range(BUCKETS)] for name in candidates}

    def meet(self, candidates: Collection[str]) -> None:
        """Set the candidates: new ones start without data, and those no longer named are
        forgotten."""
        own = self._means
        self._means = {
            name: own.get(name) or [RecentMean(0.0) for _ in range(BUCKETS)] for name in candidates
        }

    def ended(self, candidate: str, calls: int, first: int = 1) -> None:
        """Learn from a line that ended after so many ``calls``, the candidate having served from
        the ``first`` of them on."""
        for bucket, mean in enumerate(self._means[candidate]):
            from_, to = max(2**bucket, first), calls
            if bucket < BUCKETS - 1:
                to = min(2 ** (bucket + 1) - 1, calls)
            if from_ <= to:
                mean.add(calls - (from_ + to) / 2.0)

    def after(self, calls: int) -> dict[str, float]:
        """Estimate how many calls follow after so many, per candidate. A candidate that has not
        come as far gets the mean of the others; without any data, as many again follow."""
        bucket = min(max(calls, 1).bit_length() - 1, BUCKETS - 1)
        means = [own[bucket] for own in self._means.values()]
        if not any(mean.count for mean in means):
            return dict.fromkeys(self._means, float(calls))
        return dict(zip(self._means, expected(means), strict=True))


# What the calls of a zoo usually find in their caches, and how its lines usually grow.
#
# Running means of one worker, from the calls that it served: they are no part of the log's fold,
# nor is the state of the caches, since both are gone within minutes.

DEPLOYMENTS = 1_000
"""Number of deployments whose hits are remembered, the most recently used."""
ATTACHMENT_TOKENS = 1_500.0
"""Tokens of an attachment until the first one shows: those of a screenshot."""
STEP = 0.05
"""Step to which the usual part of a cost is rounded: when it changes, the plan over recent prompts
is recomputed."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The outlook of a request at a candidate: ``warm`` tokens of its prompt are in the cache, a
    ``share`` of the others is stored, and ``remaining`` calls follow, each prompt ``growth`` tokens
    longer than the one before."""

    warm: float = 0.0
    share: float = 0.0
    remaining: float = 0.0
    growth: float = 0.0

    def cost(
        self, price: Price, prompt_tokens: float, completion_tokens: float, seconds: float
    ) -> float:
        """Return the expected cost of a request, as the mean over it and those that follow it."""
        turn = Turn(prompt_tokens, self.growth, completion_tokens, seconds=seconds)
        if self.remaining == 0.0:
            return now(price, turn, self.warm, self.share)
        held = hold(price, turn, self.warm, self.remaining, self.share)
        return held / (1.0 + self.remaining)


class Habits:
    """The running means of one zoo. Before the first call, they give what a router without them
    would assume: nothing is warm, and nothing follows."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._hits: Bounded[str, RecentMean] = Bounded(DEPLOYMENTS)
        self._cold = {name: RecentMean(0.0) for name in candidates}
        self._stored = {name: RecentMean(0.0) for name in candidates}
        self._paid = {name: RecentMean(0.0) for name in candidates}
        self._growth = RecentMean(0.0)
        self._density = RecentMean(CHARACTERS_PER_TOKEN)
        self._attachment = RecentMean(ATTACHMENT_TOKENS)
        self._remaining = Remaining(candidates)
        self._ended = 0
        self._met: Collection[str] = candidates

    def meet(self, candidates: Collection[str]) -> None:
        """Set the candidates if they have changed: models come and go."""
        if candidates is self._met:
            return
        self._met = candidates
        for means in (self._cold, self._stored, self._paid):
            for name in [each for each in means if each not in candidates]:
                del means[name]
            for name in candidates:
                means.setdefault(name, RecentMean(0.0))
        self._remaining.meet(candidates)

    def share_found(self, deployment: str) -> float:
        """Return the share of previously read tokens that a deployment finds in its cache."""
        found = self._hits.get(deployment)
        return 1.0 if found is None else found.value

    def tokens(self, line: Line, place: Place) -> float:
        """Estimate the tokens of a prompt by those of its line's last one.

        What it has more or less than that one is text, of which a line may have more characters a
        token than the lines' growth shows, and attachments, whose few characters say nothing. All
        else, such as the tools, is in both. Whole prompts, and other lines, do not tell of it: a
        loop of screenshots has a hundred times the tokens of a text of its length."""
        attached, attachment, density = line.attached, self._attachment.value, self._density.value
        if attached:
            attachment = min(attachment, line.prompt_tokens / attached)
        text = line.prompt_tokens - attachment * (attached or 0)
        density = max(density, line.characters / max(text, 1.0))
        seen = 0 if attached is None else place.attached - attached
        since = place.characters - line.characters
        return line.prompt_tokens + since / density + seen * attachment

    def called(
        self, place: Place, deployment: str, usage: Usage, price: Price, *, expected: float | None
    ) -> None:
        """Learn from a call of the line's candidate. ``expected`` is the number of tokens that the
        previous call there had read, if they were still warm; None if nothing was."""
        line, name = place.line, place.line.candidate
        if name is None or name not in self._cold or usage.prompt_tokens <= 0:
            return
        if expected is None:
            self._cold[name].add(usage.cached_tokens / usage.prompt_tokens)
        elif expected > 0.0:
            hits = self._hits.newest(deployment, lambda: RecentMean(1.0))
            hits.add(min(usage.cached_tokens / expected, 1.0))
        unread = usage.prompt_tokens - usage.cached_tokens
        if price.written_surcharge > 0.0 and unread > 0:
            self._stored[name].add(usage.written_tokens / unread)
        since, tokens = place.characters - line.characters, usage.prompt_tokens - line.prompt_tokens
        if line.prompt_tokens and since > 0 and tokens > 0:
            self._growth.add(tokens)
            attached = 0 if line.attached is None else place.attached - line.attached
            if attached > 0:
                seen = tokens - since / self._density.value
                self._attachment.add(max(seen / attached, 0.0))
            elif attached == 0:
                self._density.add(max(since / tokens, 1.0))  # fewer show that not all is text
        plain = price.of(float(usage.prompt_tokens), float(usage.completion_tokens))
        if plain > 0.0:
            self._paid[name].add(price.of_usage(usage) / plain)

    def ended(self, line: Line) -> None:
        """Learn the length of a line that is no longer continued."""
        if line.candidate in self._cold:
            self._ended += 1
            self._remaining.ended(str(line.candidate), line.requests, line.held_from)

    def usual_part(self, candidate: str) -> float:
        """Return the usual cost of calls as a share of their cost without a cache."""
        paid = self._paid[candidate]
        return STEP * round(paid.value / STEP) if paid.count else 1.0

    def ahead(
        self, candidates: Sequence[str], warm: Mapping[str, float], line: Line, tokens: float
    ) -> dict[str, Ahead]:
        """Estimate what a request of so many tokens finds at each candidate. For a new line, the
        beginning that all prompts share may be warm, and no calls are assumed to follow until lines
        have ended. A line is taken to go on growing as it does now."""
        calls = max(line.requests, 1)
        grows = line.prompt_tokens and max(tokens - line.prompt_tokens, 0.0)
        knows = self._ended > 0 or calls > 1
        after = self._remaining.after(calls) if knows else {}
        return {
            name: Ahead(
                (name in warm and warm[name]) or self._cold[name].value * tokens,
                line.stored if line.stored is not None else self._stored[name].value,
                after.get(name, 0.0) if after else 0.0,
                grows or self._growth.value,
            )
            for name in candidates
        }
