"""A held request: one model first, nothing tried, and what the policy would rank behind it."""

import pytest

from litellm_messplus.routing.decision import Decision, Reason
from litellm_messplus.routing.held import held, upwards, without_trials
from tests.support.builders import LARGE, MEDIUM, SMALL, situation

SITUATION = situation((SMALL, 1.0, 0.5), (MEDIUM, 3.0, 0.7), (LARGE, 5.0, 0.9))


def decision(*ranking: str, expected: float = 0.5) -> Decision:
    return Decision(
        ranking=ranking,
        explored=(LARGE,),
        is_exploration=True,
        exploration_probability=0.1,
        expected_satisfaction=expected,
        propensity=0.9,
        reason=Reason.AHEAD,
        price=7.0,
    )


def test_the_held_one_goes_first_and_nothing_is_tried() -> None:
    found = held(decision(SMALL, LARGE, MEDIUM), SITUATION, MEDIUM)
    assert found.ranking == (MEDIUM, SMALL, LARGE)
    assert (found.expected_satisfaction, found.propensity, found.price) == (0.7, 1.0, 7.0)
    assert (found.explored, found.is_exploration, found.exploration_probability) == ((), False, 0.0)
    assert found.reason is Reason.HELD


def test_what_the_policy_expects_of_the_one_that_it_would_choose_stands() -> None:
    """Of a forced request it is the rate of forced ones."""
    assert held(decision(SMALL, expected=0.3), SITUATION, SMALL).expected_satisfaction == 0.3


def test_one_that_cannot_take_it_holds_nothing() -> None:
    with pytest.raises(KeyError):
        held(decision(SMALL), SITUATION, "gone")


def test_trouble_goes_up_to_the_first_that_is_expected_to_be_better() -> None:
    found = upwards(decision(SMALL, LARGE, MEDIUM), SITUATION, SMALL)
    assert found is not None
    assert found.ranking == (LARGE, MEDIUM, SMALL)
    assert (found.expected_satisfaction, found.reason) == (0.9, Reason.TROUBLE)
    assert upwards(decision(SMALL, LARGE, MEDIUM), SITUATION, LARGE) is None


def test_no_policy_probes_without_trials() -> None:
    found = without_trials(SITUATION)
    assert found.exploration_draw == 1.0
    assert found.is_labelled is False
