"""Algorithm 1 of the paper, written down once more in plain numbers and held against the engine.

queue           Q <- max(0, Q + alpha - s)                              (Eq. 2)
one SGD step    g = (s-hat - s) / M * a + mu z, v <- 0.9 v + g, z <- z - 0.5 v    (Eq. 4)
exploration     X_t = 1 with p_t = min(1, c / t^(1/4)): everyone is called
else            argmin V E + Q (alpha - s-hat)
"""

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.engine import Question
from litellm_messplus.core.head import LinearHeads
from litellm_messplus.core.prompt import Prompt
from tests.support.builders import (
    LARGE,
    PRICES,
    SMALL,
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    paper_of,
    settled,
)

ALPHA, V, C, MU = 0.6, 0.03, 0.5, 0.01
ENERGY = {SMALL: 1.0, LARGE: 5.0}
"""Both answer with 100 tokens, at 0.01 and 0.05 each."""
Weights = list[float]


class Algorithm1:
    """Heads z of two features and the bias, their momentum v, and the queue."""

    def __init__(self) -> None:
        self.z: dict[str, Weights] = {name: [0.0] * 3 for name in ENERGY}
        self.v: dict[str, Weights] = {name: [0.0] * 3 for name in ENERGY}
        self.queue = 0.0

    def predict(self, name: str, a: Weights) -> float:
        logit = sum(weight * feature for weight, feature in zip(self.z[name], a, strict=True))
        return 1.0 / (1.0 + exp(-logit))

    def decide(self, t: int, a: Weights, draw: float) -> tuple[str, ...]:
        """Who is called, the one that serves first."""
        if t == 1 or draw < min(1.0, C / t**0.25):
            return LARGE, SMALL
        penalty = {
            name: V * cost + self.queue * (ALPHA - self.predict(name, a))
            for name, cost in ENERGY.items()
        }
        return (min(penalty, key=penalty.__getitem__),)

    def learn(self, name: str, a: Weights, satisfaction: float) -> None:
        error = (self.predict(name, a) - satisfaction) / len(ENERGY)
        for place, feature in enumerate(a):
            gradient = error * feature + MU * self.z[name][place]
            self.v[name][place] = 0.9 * self.v[name][place] + gradient
            self.z[name][place] -= 0.5 * self.v[name][place]


def test_two_steps_by_hand() -> None:
    """z = 0, s-hat = 1/2: g = (0.5 - 1)/2 = -0.25 = v, z = 0.125. Then s-hat = sigmoid(0.25) =
    0.562176501: g = 0.281088250 + 0.00125, v = 0.9 (-0.25) + g = 0.057338250, z = 0.096330875."""
    reference = Algorithm1()
    reference.learn(LARGE, [1.0, 0.0, 1.0], 1.0)
    assert reference.z[LARGE] == [0.125, 0.0, 0.125]
    reference.learn(LARGE, [1.0, 0.0, 1.0], 0.0)
    assert reference.z[LARGE] == pytest.approx([0.096330875, 0.0, 0.096330875], abs=1e-9)


@given(st.integers(0, 2**32))
def test_the_engine_does_what_algorithm_1_does(seed: int) -> None:
    """Any of them is labelled; a missing label leaves its head alone."""
    prices = {name: PRICES[name] for name in ENERGY}
    zoo = build_zoo(prices, policy="paper", alpha=ALPHA, V=V, c=C, learning_rate=0.5)
    engine, reference, random = build_engine(zoo, seed), Algorithm1(), Random(seed)
    heads, level = paper_of(engine.state).heads, zoo.levels["default"]
    assert isinstance(heads, LinearHeads)
    for t in range(1, 13):
        features = pair(random.choice([-1.0, 0.0, 1.0]), random.choice([-0.5, 0.0, 1.0]))
        a = [*map(float, features), 1.0]
        question = Question(f"r{t}", level, Prompt(features), 40, tuple(ENERGY))
        choice = engine.decide(question)
        situation, decision = choice.situation, choice.decision
        assert situation.t == t
        assert situation.queue == pytest.approx(reference.queue)
        for each in situation.estimates:
            assert each.cost == pytest.approx(ENERGY[each.candidate])
            assert each.satisfaction == pytest.approx(reference.predict(each.candidate, a))
        called = reference.decide(t, a, situation.exploration_draw)
        assert (decision.chosen, *decision.explored) == called
        assert decision.exploration_probability == (1.0 if t == 1 else min(1.0, C / t**0.25))

        engine.apply(decided(request_id=f"r{t}"))
        for name in called:
            engine.apply(settled(name))
        for place, name in enumerate(called):
            if random.random() < 0.3:
                continue
            satisfaction = random.choice([0.0, 0.25, 1.0])
            seen = example(name, features=features, is_exploration=len(called) > 1)
            engine.apply(labelled(satisfaction, is_served=place == 0, example=seen))
            if place == 0:
                reference.queue = max(0.0, reference.queue + ALPHA - satisfaction)
            if len(called) > 1:
                reference.learn(name, a, satisfaction)
        for name, weights in reference.z.items():
            row = heads.weights[heads.candidates.index(name)]
            assert row.tolist() == pytest.approx(weights, rel=1e-9, abs=1e-12)
