"""An attacker that asks for `gold` on everything does not make another key's promise worse.

It may ask for it, and sends only requests that any model satisfies: were they counted with those of
the other keys, each of them would be credit that the others' requests are served worse on.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.recording import Prompts, Recording
from litellm_messplus.replay.run import Run, prices
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.zoo import Zoo

MODELS = ("small", "large")
RATES, COSTS = (0.55, 0.95), (1.0, 20.0)
ALPHA, REQUESTS, SEEDS = 0.85, 2000, 2
OTHERS, ATTACKER = "gold", "gold:asked"
ENCODER = HashedNgrams()
SETTINGS = ZooSettings.model_validate(
    {"alpha": 0.6, "largest": "large", "service_levels": {"gold": {"alpha": ALPHA}}}
)


class Streams(Run):
    """A run whose requests count towards different promises."""

    def __init__(self, recording: Recording, levels: Sequence[str], seed: int) -> None:
        engine = Engine(Zoo("zoo", SETTINGS, prices(recording)), ENCODER, seed)
        super().__init__(engine, recording, recording.satisfied)
        self.levels = [engine.zoo.streams[each] for each in levels]

    def _serve(self, request: int) -> bool:
        level = self.levels[request]
        self._fold_in(request)
        choice = self._decide(request, level)
        decision = choice.decision
        self._note_decided(request, level.name, choice, 1 + len(decision.explored))
        called = [self.place[name] for name in (decision.chosen, *decision.explored)]
        for verdict in self._settle(request, called, is_exploration=decision.is_exploration):
            self._late.add(request, replace(verdict, level=level.name))
        return decision.is_exploration


def others_rate(attacked_as: str | None, seed: int) -> float:
    """The share satisfied of the others' requests, between which an attacker of that level sends as
    many; None where there is no attacker."""
    random = np.random.default_rng(seed)
    is_attack = np.arange(REQUESTS) % 2 == 1
    satisfied = (random.random((REQUESTS, 2)) < RATES).astype(np.float64)
    satisfied[is_attack] = 1.0
    words = ("hello there", "derive the integral of")
    texts = [f"{words[number % 2 == 0]} {number}" for number in range(REQUESTS)]
    cost = np.tile(COSTS, (REQUESTS, 1))
    recording = Recording(
        *("attacked", MODELS, "usd", Prompts.encode(texts, ENCODER)),
        *(np.arange(REQUESTS), satisfied, cost),
    )
    levels = [attacked_as if attack else OTHERS for attack in is_attack]
    if attacked_as is None:
        recording = recording.take(np.flatnonzero(~is_attack))
        levels, is_attack = [OTHERS] * len(recording), np.zeros(len(recording), np.bool_)
    outcome = Streams(recording, [str(each) for each in levels], seed).go()
    return float(outcome.satisfied[~is_attack].mean())


def mean_rate(attacked_as: str | None) -> float:
    return float(np.mean([others_rate(attacked_as, seed) for seed in range(SEEDS)]))


def test_an_attacker_that_asks_for_gold_leaves_the_others_promise_as_it_was() -> None:
    alone = mean_rate(None)
    assert alone == pytest.approx(ALPHA, abs=0.015)
    assert mean_rate(ATTACKER) == pytest.approx(alone, abs=0.015)


def test_counted_with_the_others_it_would_have_made_it_worse() -> None:
    """What the stream of its own is for."""
    assert mean_rate(OTHERS) < ALPHA - 0.05
