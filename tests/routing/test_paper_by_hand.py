"""Six requests of Algorithm 1 through the engine, every number worked out by hand.

Two candidates (M = 2), three weights a head (two features and the bias), and
alpha = 0.6, V = 0.03, c = 0.5, learning rate 0.5, momentum 0.5, weight decay 0.1.
Both answer with 100 tokens, at 0.01 and 0.05 each: E_small = 1 and E_large = 5 throughout.

One SGD step on a label s of head z, for features a = (a1, a2, 1) and s-hat = sigmoid(z a):

    gradient of F   g = (s-hat - s) / M * a + mu * z
    momentum        v <- 0.5 v + g
    step            z <- z - 0.5 v
"""

from math import exp
from typing import Any

import pytest

from litellm_messplus.deciding.decider import Engine, Question
from litellm_messplus.prediction.head import LinearHeads
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Situation
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

DRAWS = {1: 0.9, 2: 0.42, 3: 0.38, 4: 0.36, 5: 0.99, 6: 0.31}
"""X_t = 1 where the draw is below p_t; t = 1 explores whatever it drew."""


def near(expected: Any) -> Any:
    """Equal but for the rounding of the last digits."""
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


class Walk:
    """Sends requests through the engine as the proxy does, and gives it the labels."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.level = engine.zoo.levels["default"]
        self.asked = 0

    def ask(self, features: tuple[float, float]) -> tuple[Situation, Decision]:
        self.features = pair(*features)
        self.asked += 1
        request_id = f"r{self.asked}"
        choice = self.engine.decide(
            Question(request_id, self.level, Prompt(self.features), 40, (SMALL, LARGE))
        )
        self.engine.apply(decided(request_id=request_id))
        self.decision = choice.decision
        return choice.situation, choice.decision

    def answer(self, **satisfaction: float) -> None:
        """Every call that was made ends, and those named are labelled, the served one first."""
        for name in (self.decision.chosen, *self.decision.explored):
            self.engine.apply(settled(name))
        for name in (self.decision.chosen, *self.decision.explored):
            if name in satisfaction:
                seen = example(
                    name, features=self.features, is_exploration=self.decision.is_exploration
                )
                is_served = name == self.decision.chosen
                self.engine.apply(labelled(satisfaction[name], is_served=is_served, example=seen))

    @property
    def queue(self) -> float:
        return self.engine.state.policy.queue("default")

    def head(self, name: str) -> list[float]:
        heads = paper_of(self.engine.state).heads
        assert isinstance(heads, LinearHeads)
        return [float(weight) for weight in heads.weights[heads.candidates.index(name)]]


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Walk:
    monkeypatch.setattr(
        "litellm_messplus.deciding.decider.uniform", lambda seed, stream, t: DRAWS[t]
    )
    zoo = build_zoo(
        {SMALL: PRICES[SMALL], LARGE: PRICES[LARGE]},
        policy="paper",
        alpha=0.6,
        V=0.03,
        c=0.5,
        learning_rate=0.5,
        momentum=0.5,
        weight_decay=0.1,
    )
    return Walk(build_engine(zoo))


def sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def estimates(situation: Situation) -> dict[str, float]:
    return {estimate.candidate: estimate.satisfaction for estimate in situation.estimates}


def costs(situation: Situation) -> dict[str, float]:
    return {estimate.candidate: estimate.cost for estimate in situation.estimates}


def test_the_first_six_requests(walk: Walk) -> None:
    # t = 1, a = (1, 0): everything is called, the user gets the largest.
    situation, decision = walk.ask((1, 0))
    assert (situation.t, situation.queue) == (1, 0.0)
    assert costs(situation) == {SMALL: 1.0, LARGE: 5.0}
    assert estimates(situation) == {SMALL: 0.5, LARGE: 0.5}  # z_1 = 0, sigmoid(0) = 1/2
    assert (decision.chosen, decision.explored) == (LARGE, (SMALL,))
    assert decision.exploration_probability == 1.0
    walk.answer(large=1, small=0)
    # large: g = (0.5 - 1)/2 * (1, 0, 1) + 0.1 * 0 = (-0.25, 0, -0.25) = v, z = -0.5 v
    assert walk.head(LARGE) == near([0.125, 0, 0.125])
    # small: g = (0.5 - 0)/2 * (1, 0, 1) = (0.25, 0, 0.25) = v
    assert walk.head(SMALL) == near([-0.125, 0, -0.125])
    # Q_2 = max(0, 0 + 0.6 - 1) = 0

    # t = 2, a = (1, 0): p_2 = 0.5 / 2^(1/4) = 0.5 / 1.189207115 = 0.420448208 > 0.42: explore.
    situation, decision = walk.ask((1, 0))
    assert (situation.t, situation.queue) == (2, 0.0)
    s_large = sigmoid(0.25)  # 0.125 * 1 + 0.125 = 0.25, s-hat = 0.562176501
    s_small = sigmoid(-0.25)  # 0.437823499
    assert s_large == pytest.approx(0.562176501, abs=1e-9)
    assert estimates(situation) == near({SMALL: s_small, LARGE: s_large})
    assert decision.exploration_probability == pytest.approx(0.420448208, abs=1e-9)
    assert (decision.chosen, decision.explored) == (LARGE, (SMALL,))
    walk.answer(large=0, small=0)
    # large: g = (0.562176501 - 0)/2 + 0.1 * 0.125 = 0.281088250 + 0.0125 = 0.293588250
    #        v = 0.5 * (-0.25) + 0.293588250 = 0.168588250
    #        z = 0.125 - 0.5 * 0.168588250 = 0.040705875, twice: both weights have gone alike
    v_large = 0.5 * -0.25 + (s_large / 2 + 0.1 * 0.125)
    z_large = 0.125 - 0.5 * v_large
    assert z_large == pytest.approx(0.040705875, abs=1e-9)
    assert walk.head(LARGE) == near([z_large, 0, z_large])
    # small: g = 0.437823499/2 - 0.1 * 0.125 = 0.206411750
    #        v = 0.5 * 0.25 + 0.206411750 = 0.331411750
    #        z = -0.125 - 0.5 * 0.331411750 = -0.290705875
    v_small = 0.5 * 0.25 + (s_small / 2 + 0.1 * -0.125)
    z_small = -0.125 - 0.5 * v_small
    assert z_small == pytest.approx(-0.290705875, abs=1e-9)
    assert walk.head(SMALL) == near([z_small, 0, z_small])
    # Q_3 = max(0, 0 + 0.6 - 0) = 0.6

    # t = 3, a = (1, 0): p_3 = 0.5 / 3^(1/4) = 0.5 / 1.316074013 = 0.379917843 < 0.38: decide.
    situation, decision = walk.ask((1, 0))
    assert (situation.t, situation.queue) == (3, near(0.6))
    s_large = sigmoid(2 * z_large)  # sigmoid(0.081411750) = 0.520341704
    s_small = sigmoid(2 * z_small)  # sigmoid(-0.581411750) = 0.358608...
    assert s_large == pytest.approx(0.520341704, abs=1e-8)
    assert estimates(situation) == near({SMALL: s_small, LARGE: s_large})
    assert decision.exploration_probability == pytest.approx(0.379917843, abs=1e-9)
    # small: 0.03 * 1 + 0.6 * (0.6 - 0.3586) = 0.1748; large: 0.15 + 0.6 * (0.6 - 0.5203) = 0.1978
    assert 0.03 * 1 + 0.6 * (0.6 - s_small) < 0.03 * 5 + 0.6 * (0.6 - s_large)
    assert (decision.chosen, decision.explored) == (SMALL, ())
    walk.answer(small=0)
    # Q_4 = 0.6 + 0.6 - 0 = 1.2, and z_4 = z_3: only explorations train
    assert walk.head(SMALL) == near([z_small, 0, z_small])

    # t = 4, a = (1, 0): p_4 = 0.5 / sqrt(2) = 0.353553391 < 0.36: decide.
    situation, decision = walk.ask((1, 0))
    assert (situation.t, situation.queue) == (4, near(1.2))
    assert estimates(situation) == near({SMALL: s_small, LARGE: s_large})
    assert decision.exploration_probability == pytest.approx(0.353553391, abs=1e-9)
    # small: 0.03 + 1.2 * (0.6 - 0.3586) = 0.3197; large: 0.15 + 1.2 * (0.6 - 0.5203) = 0.2456
    assert 0.03 * 1 + 1.2 * (0.6 - s_small) > 0.03 * 5 + 1.2 * (0.6 - s_large)
    assert (decision.chosen, decision.explored) == (LARGE, ())
    walk.answer(large=1)
    # Q_5 = 1.2 + 0.6 - 1 = 0.8

    # t = 5, a = (0, 1): the features' weights know nothing of it, the bias alone speaks.
    situation, decision = walk.ask((0, 1))
    assert (situation.t, situation.queue) == (5, near(0.8))
    s_large = sigmoid(z_large)  # sigmoid(0.040705875) = 0.510175
    s_small = sigmoid(z_small)  # sigmoid(-0.290705875) = 0.427831
    assert estimates(situation) == near({SMALL: s_small, LARGE: s_large})
    assert decision.exploration_probability == near(0.5 / 5**0.25)  # 0.3344
    # small: 0.03 + 0.8 * (0.6 - 0.4278) = 0.1677; large: 0.15 + 0.8 * (0.6 - 0.5102) = 0.2219
    assert 0.03 * 1 + 0.8 * (0.6 - s_small) < 0.03 * 5 + 0.8 * (0.6 - s_large)
    assert (decision.chosen, decision.explored) == (SMALL, ())
    walk.answer(small=1)
    # Q_6 = 0.8 + 0.6 - 1 = 0.4

    # t = 6, a = (0, 1): p_6 = 0.5 / 6^(1/4) = 0.5 / 1.565084580 = 0.319471552 > 0.31: explore.
    situation, decision = walk.ask((0, 1))
    assert (situation.t, situation.queue) == (6, near(0.4))
    assert decision.exploration_probability == pytest.approx(0.319471552, abs=1e-9)
    assert (decision.chosen, decision.explored) == (LARGE, (SMALL,))
    before = walk.head(SMALL)
    walk.answer(large=1)  # nobody says what the small one's answer was worth
    # large: (s-hat - s)/M = (0.510175 - 1)/2 = -0.244912
    #   first weight   g = 0.1 z (its feature is 0), v = 0.5 * 0.168588250 + g
    #   second weight  g = -0.244912 + 0.1 * 0,      v = 0.5 * 0 + g
    #   bias           g = -0.244912 + 0.1 z,        v = 0.5 * 0.168588250 + g
    error = (s_large - 1) / 2
    assert walk.head(LARGE) == near(
        [
            z_large - 0.5 * (0.5 * v_large + 0.1 * z_large),  # -0.003476
            -0.5 * error,  # 0.122456
            z_large - 0.5 * (0.5 * v_large + error + 0.1 * z_large),  # 0.118980
        ]
    )
    assert walk.head(SMALL) == before  # a missing label leaves its head alone, bit for bit
    # Q_7 = max(0, 0.4 + 0.6 - 1) = 0
    assert walk.queue == pytest.approx(0.0, abs=1e-12)
