"""What the calls of a zoo usually find in their caches, and how its lines usually grow.

Running means of one worker, from the calls that it served: they are no part of the log's fold, as
what is warm itself is not, for both are gone within minutes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litellm_messplus.conversations.holding import Remaining, Turn, hold, per_request
from litellm_messplus.conversations.line import Line, Place
from litellm_messplus.conversations.warmth import Hits
from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.costs.token_estimator import CHARACTERS_PER_TOKEN, RecentMean

DEPLOYMENTS = 1_000
"""Whose hits are remembered, those used last."""
STEP = 0.05
"""To which the usual part of a cost is rounded: the plan over recent prompts is worked out anew
where it changes."""


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
        self._hits: OrderedDict[str, Hits] = OrderedDict()
        self._cold = {name: RecentMean(0.0) for name in candidates}
        self._stored = {name: RecentMean(0.0) for name in candidates}
        self._paid = {name: RecentMean(0.0) for name in candidates}
        self._growth = RecentMean(0.0)
        self._density = RecentMean(CHARACTERS_PER_TOKEN)
        self._remaining = Remaining(candidates)
        self._ended = 0

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
        found = self._hits.setdefault(deployment, Hits())
        self._hits.move_to_end(deployment)
        if len(self._hits) > DEPLOYMENTS:
            self._hits.popitem(last=False)
        return found
