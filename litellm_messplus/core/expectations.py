"""The expectations of each candidate for a request, before any call."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.caches import Ahead
from litellm_messplus.core.decision import Estimate
from litellm_messplus.core.plan import FEWEST, Outlook
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.zoo_state import ZooState
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import expected
from litellm_messplus.settings.zoo import Zoo

OUTLOOKS = 8
"""The most outlooks cached, for different sets of healthy candidates or prices."""

Parts = Mapping[str, float]
"""Costs of average calls as parts of those without a prompt cache, by candidate; by default 1."""


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
        """Compute the averages again: a call has ended."""
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

    def prompts_changed(self, usual_parts: Parts) -> None:
        """Compute the outlook of the whole zoo again: the recent prompts have changed."""
        self._outlooks.clear()
        self.outlook(self._zoo.present, usual_parts)

    def estimates(
        self,
        prompt: Prompt,
        prompt_tokens: Mapping[str, float],
        most_completion_tokens: float,
        ahead: Mapping[str, Ahead],
        usual_parts: Parts,
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
            part = usual_parts.get(name, 1.0) if usual_parts else 1.0
            found.append(Estimate(name, cost, part * typical, satisfaction))
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
        usual_parts: Parts,
        spread: Spread | None = None,
    ) -> Outlook | None:
        """Return the outlook on the recent prompts for these candidates, at the current prices;
        None before there are enough prompts. The last few outlooks are cached until the recent
        prompts change."""
        recent = self._state.policy.recent
        if recent is None or len(self._state.use.seconds) < FEWEST:
            return None
        at = tuple([usual_parts.get(name, 1.0) if usual_parts else 1.0 for name in candidates])
        key = candidates, at, spread is not None
        if key not in self._outlooks:
            if len(self._outlooks) == OUTLOOKS:
                self._outlooks.clear()
            places = [self._zoo.candidates.index(name) for name in candidates]
            costs = [
                part * self._state.use.cost(place, self._zoo.prices[name])
                for name, place, part in zip(candidates, places, at, strict=True)
            ]
            self._outlooks[key] = Outlook(
                recent.satisfaction[:, places],
                np.column_stack(costs),
                recent.hope[places].tolist(),
                spread,
            )
        return self._outlooks[key]


def _usual(
    price: Price, prompt_tokens: float | None, completion_tokens: float, seconds: float
) -> Usual:
    cost = None
    if prompt_tokens is not None:
        cost = price.of(prompt_tokens, completion_tokens, seconds=seconds)
    return Usual(prompt_tokens, completion_tokens, seconds, cost, price)
