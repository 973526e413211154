"""The expectations of each candidate for a request, before any call, and the standing of a service
level against its limits in addition to alpha."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from litellm_messplus.conversations.caches import Ahead
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import expected
from litellm_messplus.prediction.answer_heads import Spread
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Estimate, Situation
from litellm_messplus.routing.limits import (
    DAY,
    LATE_SHARE,
    Lateness,
    Limits,
    allowed_share,
    late_price,
    strain,
)
from litellm_messplus.routing.plan import FEWEST, Matrix, Outlook
from litellm_messplus.runtime.vocabulary import is_before
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state.entries import LimitedUse
from litellm_messplus.state.limits import day_of
from litellm_messplus.state.zoo_state import ZooState

OUTLOOKS = 8
"""The most outlooks cached, for different sets of healthy candidates or prices."""

Factors = Mapping[str, float]
"""Factors on candidates' prices; 1 for a candidate without one."""


class Usual(NamedTuple):
    """The average use of a candidate's call, its cost, and its price; ``prompt_tokens`` and
    ``cost`` are None before any call."""

    prompt_tokens: float | None
    completion_tokens: float
    seconds: float
    cost: float | None
    price: Price


class Expectations:
    """Expectations from the state of a zoo. What is the same for all requests is computed when the
    fold changes it, not while a request waits."""

    def __init__(self, zoo: Zoo, state: ZooState) -> None:
        self._zoo = zoo
        self._state = state
        self._usual: dict[str, Usual] = {}
        self._outlooks: dict[tuple[Any, ...], Outlook] = {}
        self.calls_changed()

    def calls_changed(self) -> None:
        """Compute the averages again: a call has ended, or a lesson was taught. A charge for
        lateness depends on the calls too."""
        for key in [key for key in self._outlooks if key[-1] is not None]:
            del self._outlooks[key]
        estimators = self._state.estimators.values()
        prompts = [each.prompt_tokens for each in estimators]
        columns = (
            expected(prompts) if any(each.count for each in prompts) else [None] * len(prompts),
            expected([each.completion_tokens for each in estimators]),
            expected([each.seconds for each in estimators]),
        )
        self._usual = {
            name: _usual(self._zoo.prices[name], *row)
            for name, row in zip(self._zoo.candidates, zip(*columns, strict=True), strict=True)
        }

    def prompts_changed(self, factors: Factors) -> None:
        """Compute the outlook of the whole zoo again: the recent prompts have changed."""
        self._outlooks.clear()
        self.outlook(self._zoo.present, factors)

    def estimates(
        self,
        prompt: Prompt,
        prompt_tokens: Mapping[str, float],
        most_completion_tokens: float,
        factors: Factors,
        ahead: Mapping[str, Ahead],
        usual_parts: Factors,
    ) -> tuple[Estimate, ...]:
        """Estimate each candidate in ``prompt_tokens``. Missing parts of ``prompt`` stand at the
        average of all prompts. ``ahead`` is what the request finds in a cache; ``usual_parts`` the
        cost of an average call as a part of that without a cache."""
        satisfactions = self._state.policy.predict(prompt, list(prompt_tokens))
        known = self._state.lengths.multiples(prompt)
        multiples = dict(zip(self._zoo.candidates, known, strict=True))
        found = []
        for (name, tokens), satisfaction in zip(prompt_tokens.items(), satisfactions, strict=True):
            usual, multiple = self._usual[name], multiples[name]
            completion, price = usual.completion_tokens, usual.price
            longest = completion * multiple
            if longest > most_completion_tokens:
                longest = most_completion_tokens
            seconds = usual.seconds * multiple
            if name in ahead:
                cost = ahead[name].cost(price, tokens, longest, seconds)
            else:
                cost = price.of(tokens, longest, seconds=seconds)
            typical = usual.cost
            if typical is None:
                typical = price.of(tokens, completion, seconds=usual.seconds)
            factor = factors.get(name, 1.0) if factors else 1.0
            part = usual_parts.get(name, 1.0) if usual_parts else 1.0
            length = most_completion_tokens / completion if completion > 0.0 else 1.0
            if completion > 0.0 and length > multiple:
                length = multiple
            found.append(
                Estimate(name, factor * cost, factor * part * typical, satisfaction, length)
            )
        return tuple(found)

    def tokens(
        self, candidates: Sequence[str], counted: Mapping[str, float], prompt_characters: int
    ) -> dict[str, float]:
        """Estimate the tokens of a prompt of ``prompt_characters`` for each candidate that is not
        ``counted``."""
        known = self._state.estimators
        return {
            name: (name in counted and counted[name])
            or prompt_characters / known[name].characters_per_token.value
            for name in candidates
        }

    def outlook(
        self,
        candidates: tuple[str, ...],
        factors: Factors,
        limits: Limits | None = None,
        spread: Spread | None = None,
    ) -> Outlook | None:
        """Return the outlook on the recent prompts for these candidates, at the current prices, and
        charged for lateness if there are limits; None before there are enough prompts. The last few
        outlooks are cached until the recent prompts change."""
        recent = self._state.policy.recent
        if recent is None or len(self._state.use.seconds) < FEWEST:
            return None
        at = tuple([factors.get(name, 1.0) if factors else 1.0 for name in candidates])
        late = None if limits is None else limits.charged
        key = candidates, at, spread is not None, late
        if key not in self._outlooks:
            if len(self._outlooks) == OUTLOOKS:
                self._outlooks.clear()
            places = [self._zoo.candidates.index(name) for name in candidates]
            costs = self._costs(candidates, places, at)
            if limits is not None and late is not None:
                costs = self._charged(costs, candidates, places, limits)
            self._outlooks[key] = Outlook(
                recent.satisfaction[:, places],
                np.column_stack(costs),
                recent.hope[places].tolist(),
                spread,
            )
        return self._outlooks[key]

    def _costs(
        self, candidates: Sequence[str], places: Sequence[int], factors: Sequence[float]
    ) -> list[Any]:
        return [
            factor * self._state.use.cost(place, self._zoo.prices[name])
            for name, place, factor in zip(candidates, places, factors, strict=True)
        ]

    def _charged(
        self,
        costs: Sequence[Any],
        candidates: Sequence[str],
        places: Sequence[int],
        limits: Limits,
    ) -> list[Any]:
        """Add the charge for lateness to the costs of the recent prompts."""
        lengths = self._state.use.lengths
        return [
            cost + limits.charge * self._late(name, lengths[:, place], limits)
            for cost, name, place in zip(costs, candidates, places, strict=True)
        ]

    def _late(self, candidate: str, lengths: Matrix, limits: Limits) -> Matrix:
        durations, limit = self._state.durations[candidate], limits.late_after or math.inf
        return durations.late_of_many(lengths, limit, LATE_SHARE)


def _usual(
    price: Price, prompt_tokens: float | None, completion_tokens: float, seconds: float
) -> Usual:
    cost = None
    if prompt_tokens is not None:
        cost = price.of(prompt_tokens, completion_tokens, seconds=seconds)
    return Usual(prompt_tokens, completion_tokens, seconds, cost, price)


# The standing of a service level against its limits in addition to alpha, at a decision.


def is_limited(level: ServiceLevel) -> bool:
    """Tell whether a level has a limit. A stream served as before has none: another router chose
    its models."""
    has_one = level.p95_seconds is not None or level.budget_per_day is not None
    return has_one and not is_before(level.name)


def limits_of(
    level: ServiceLevel,
    state: ZooState,
    estimates: Sequence[Estimate],
    in_flight: Iterable[LimitedUse],
    at: float,
) -> Limits | None:
    """Compute the standing of a level ``at`` a time in seconds since 1970; None without limits.
    ``in_flight`` are the requests that are not in the log yet."""
    if not is_limited(level):
        return None
    account, found, waiting = state.limits.account(level.name), Limits(), tuple(in_flight)
    limit = level.p95_seconds
    if limit is not None:
        owed = account.late_owed + sum(each.late - LATE_SHARE for each in waiting)
        found = found._replace(
            late_after=limit,
            late_owed=owed,
            late_price=late_price(owed, [each.typical_cost for each in estimates]),
            late={each.candidate: _lateness(state, each, limit) for each in estimates},
        )
    if level.budget_per_day is not None:
        day, budget = day_of(at), level.budget_per_day
        spent = account.spent(day) + sum(each.cost for each in waiting)
        elapsed = at - day * DAY
        found = found._replace(
            budget=budget,
            spent=spent,
            allowed=budget * allowed_share(elapsed),
            strain=strain(spent, budget, elapsed),
        )
    return found


def _lateness(state: ZooState, estimate: Estimate, limit: float) -> Lateness:
    durations = state.durations[estimate.candidate]
    return Lateness(
        durations.late(estimate.length, limit, LATE_SHARE), durations.late(1.0, limit, LATE_SHARE)
    )


def use_of(situation: Situation, decision: Decision) -> LimitedUse | None:
    """Compute a decided request's probability of being late, and its cost; None without limits."""
    limits = situation.limits
    if limits is None:
        return None
    called = {decision.chosen, *decision.explored}
    cost = sum(each.cost for each in situation.everyone if each.candidate in called)
    late = limits.late[decision.chosen].now if limits.late_after is not None else LATE_SHARE
    return LimitedUse(late, cost)
