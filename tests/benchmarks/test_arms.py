"""The simulation of one model at three efforts: the arms are those of a configuration, their prices
are as stated, and routing between them beats both yardsticks that it is shown beside."""

import numpy as np
import pytest

from benchmarks.arms import EFFORTS, TOKENS, drawn, played, zoo


def test_the_arms_are_those_of_the_configuration_and_the_most_effort_is_the_largest() -> None:
    found = zoo(0.9)
    assert found.candidates == tuple(f"openai/thinker, {each} effort" for each in EFFORTS)
    assert found.largest == "openai/thinker, high effort"
    assert len(set(found.prices.values())) == 1


def test_efforts_cost_as_stated_and_solve_more_the_more_they_cost() -> None:
    recording = drawn(20_000, zoo(0.9).candidates, 1)
    cost, rate = recording.cost.mean(axis=0), recording.satisfied.mean(axis=0)
    assert cost / cost[0] == pytest.approx(np.array(TOKENS) / TOKENS[0], rel=0.03)
    assert np.diff(rate).min() > 0.1


def test_routing_holds_alpha_below_the_cost_of_a_mix_and_merging_does_not_hold_it() -> None:
    found = played(0.9, 1500, 0)
    assert found["points"] > -1.5
    assert found["oracle"] < found["cost_over_mix"] < 0.95
    assert found["merged_points"] < -5.0
