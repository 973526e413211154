"""The engine: decides for one zoo, and folds the log into what it decides from.

The proxy and the replay are two drivers of this one class, so that what a replay shows is what
production does.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from litellm_messplus.costs.token_estimator import TokenEstimator, expected
from litellm_messplus.draws import uniform
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.prediction.length_heads import LengthHeads
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Estimate, Situation, aim
from litellm_messplus.routing.plan import FEWEST, Outlook
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.state.entries import Decided, Entry, Rule, Settled, Taught
from litellm_messplus.state.policies import build_policy
from litellm_messplus.state.zoo_state import ExpectedUse, ZooState
from litellm_messplus.zoo import Zoo

logger = logging.getLogger(__name__)

OUTLOOKS = 8
"""Of different sets of healthy candidates, or prices, that are kept at once."""


class Usual(NamedTuple):
    """The average use of a call of one candidate; ``prompt_tokens`` is None before any call."""

    prompt_tokens: float | None
    completion_tokens: float
    seconds: float


class Engine:
    """The decisions of one zoo. ``state`` is exactly the fold of the log so far. Requests decided
    since are numbered, and count in the backlog with what is expected of them; ``newest`` holds
    each level's last.

    ``price_factors`` is set from outside, where prices are measured: by it a candidate's price is
    multiplied, 1 unless it has one. It is no part of the fold.
    """

    def __init__(self, zoo: Zoo, encoder: Encoder, seed: int) -> None:
        self.zoo = zoo
        self.encoder = encoder
        self._seed = seed
        self.newest: dict[str, Decision] = {}
        self.price_factors: dict[str, float] = {}
        self._unfolded: dict[str, dict[str, float]] = {level: {} for level in zoo.levels}
        self._outlooks: dict[tuple[Any, ...], Outlook] = {}
        self.resume(self.empty_state())

    def resume(self, state: ZooState) -> None:
        """Go on from a state in place of what was folded in so far."""
        self.state = state
        self._outlooks.clear()
        self._usual = self._averages()

    def empty_state(self) -> ZooState:
        """Build the state before any request."""
        encoder = self.encoder
        policy = build_policy(
            self.zoo.settings, self.zoo.candidates, encoder.dimension, is_fast=encoder.is_fast
        )
        estimators = {name: TokenEstimator() for name in self.zoo.candidates}
        models = len(self.zoo.candidates)
        lengths = LengthHeads(models, encoder.dimension)
        rule = Rule(self.zoo.settings.labels.precedence)
        return ZooState(
            encoder.name, rule, policy, estimators, lengths, ExpectedUse.none_yet(models)
        )

    def situation(
        self,
        level: ServiceLevel,
        prompt: Prompt,
        prompt_characters: int,
        candidates: Sequence[str],
        most_completion_tokens: float = math.inf,
        prompt_tokens: Mapping[str, float] | None = None,
        *,
        is_forced: bool = False,
    ) -> Situation:
        """Describe to the policy a request that any of ``candidates`` could serve now.

        What ``prompt`` does not tell stands at the average of all prompts. No answer is expected to
        be longer than ``most_completion_tokens``, which the request allows. ``prompt_tokens`` are
        those of the candidates for which they were counted; else the characters tell. It
        ``is_forced`` where the gates left a single candidate.
        """
        unfolded = self._unfolded[level.name]
        t = self.state.requests[level.name] + len(unfolded) + 1
        stream = f"{self.zoo.name}/{level.name}"
        return Situation(
            t=t,
            alpha=self._aim(level),
            queue=self.state.policy.queue(level.name),
            in_flight=sum(unfolded.values()),
            estimates=self._estimates(
                prompt,
                {
                    name: (prompt_tokens or {}).get(name) or self._tokens(name, prompt_characters)
                    for name in candidates
                },
                most_completion_tokens,
            ),
            largest=self.zoo.largest,
            exploration_draw=uniform(self._seed, stream, t),
            choice_draw=uniform(self._seed, f"{stream}/choice", t),
            outlook=self._outlook(tuple(candidates)),
            is_forced=is_forced,
        )

    def decide(self, request_id: str, level: ServiceLevel, situation: Situation) -> Decision:
        """Decide, and number the request: it counts in ``t`` from now on."""
        decision = self.state.policy.decide(level, situation)
        expected_shortfall = situation.alpha - decision.expected_satisfaction
        self._unfolded[level.name][request_id] = expected_shortfall
        self.newest[level.name] = decision
        return decision

    def forget(self, request_id: str) -> None:
        """Count it as in flight no longer: it is in the log, or will never be."""
        for unfolded in self._unfolded.values():
            unfolded.pop(request_id, None)

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        if isinstance(entry, Decided):
            self.forget(entry.request_id)
        version = self.state.use.version
        self.state.apply(entry)
        if isinstance(entry, Settled | Taught):
            self._usual = self._averages()
        if self.state.use.version != version:  # not when a request waits for it
            self._outlooks.clear()
            self._outlook(self.zoo.candidates)

    def _aim(self, level: ServiceLevel) -> float:
        return aim(
            level.alpha,
            margin=level.margin,
            answered=self.state.policy.answered_requests(level.name),
            label_noise=level.label_noise,
        )

    def _estimates(
        self,
        prompt: Prompt,
        prompt_tokens: Mapping[str, float],
        most_completion_tokens: float,
    ) -> tuple[Estimate, ...]:
        """Estimate the candidates that ``prompt_tokens`` names."""
        satisfactions = self.state.policy.predict(prompt, list(prompt_tokens))
        known = self.state.lengths.multiples(prompt)
        multiples = dict(zip(self.zoo.candidates, known, strict=True))
        return tuple(
            self._estimate(
                name,
                tokens,
                self._usual[name],
                multiples[name],
                most_completion_tokens,
                satisfaction,
            )
            for (name, tokens), satisfaction in zip(
                prompt_tokens.items(), satisfactions, strict=True
            )
        )

    def _averages(self) -> dict[str, Usual]:
        """Return what a call of each candidate uses on average."""
        estimators = self.state.estimators.values()
        prompts = [each.prompt_tokens for each in estimators]
        columns = (
            expected(prompts) if any(each.count for each in prompts) else [None] * len(prompts),
            expected([each.completion_tokens for each in estimators]),
            expected([each.seconds for each in estimators]),
        )
        return {
            name: Usual(*row)
            for name, row in zip(self.zoo.candidates, zip(*columns, strict=True), strict=True)
        }

    def _outlook(self, candidates: tuple[str, ...]) -> Outlook | None:
        """Return the outlook of these candidates on the recent prompts, at the prices as they are
        now; None before there are enough prompts. The last few are kept, until the fold makes new
        ones."""
        recent = self.state.policy.recent
        if recent is None or len(self.state.use.seconds) < FEWEST:
            return None
        factors = tuple(self.price_factors.get(name, 1.0) for name in candidates)
        key = candidates, factors
        if key not in self._outlooks:
            if len(self._outlooks) == OUTLOOKS:
                self._outlooks.clear()
            places = [self.zoo.candidates.index(name) for name in candidates]
            costs = [
                factor * self.state.use.cost(place, self.zoo.prices[name])
                for name, place, factor in zip(candidates, places, factors, strict=True)
            ]
            self._outlooks[key] = Outlook(
                recent.satisfaction[:, places], np.column_stack(costs), recent.hope[places].tolist()
            )
        return self._outlooks[key]

    def _tokens(self, candidate: str, prompt_characters: int) -> float:
        return self.state.estimators[candidate].tokens_of(prompt_characters)

    def _estimate(
        self,
        candidate: str,
        prompt_tokens: float,
        usual: Usual,
        multiple: float,
        most_completion_tokens: float,
        satisfaction: float,
    ) -> Estimate:
        factor, price = self.price_factors.get(candidate, 1.0), self.zoo.prices[candidate]
        tokens, seconds = usual.completion_tokens, usual.seconds
        longest = min(tokens * multiple, most_completion_tokens)
        asked = prompt_tokens if usual.prompt_tokens is None else usual.prompt_tokens
        return Estimate(
            candidate,
            factor * price.of(prompt_tokens, longest, seconds=seconds * multiple),
            factor * price.of(asked, tokens, seconds=seconds),
            satisfaction,
        )


def fold(engines: Mapping[str, Engine], entry: Entry) -> bool:
    """Fold an entry into the engine of its zoo; False where that failed, which is logged.

    One entry that makes no sense must not hold up the log, now or at any later start. Entries of a
    zoo that is no longer configured are passed over.
    """
    engine = engines.get(entry.zoo)
    if engine is None:
        return True
    try:
        engine.apply(entry)
    except Exception:
        kind = type(entry).__name__
        logger.exception("the %s at %d could not be folded in", kind, entry.position)
        return False
    return True
