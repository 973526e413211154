"""Requests without a choice: held, or forced by the gates; and what the others then aim at."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litellm_messplus.core.account import MEMORY, ForcedRequests
from litellm_messplus.core.decision import Decision, Reason
from litellm_messplus.core.head import Label
from litellm_messplus.core.held import (
    HIGHEST,
    LOWEST,
    forced,
    free_aim,
    held,
    upwards,
    without_trials,
)
from tests.support.builders import LARGE, MEDIUM, SMALL, situation

SITUATION = situation((SMALL, 1.0, 0.5), (MEDIUM, 3.0, 0.7), (LARGE, 5.0, 0.9))
shares = st.floats(0.0, 1.0)


def decision(*ranking: str, expected: float = 0.5) -> Decision:
    return Decision(*(ranking, (LARGE,), True, 0.1, expected, 0.9, Reason.AHEAD), price=7.0)


def test_the_held_one_goes_first_and_nothing_is_tried() -> None:
    found = held(decision(SMALL, LARGE, MEDIUM), SITUATION, MEDIUM)
    assert found == Decision(
        *((MEDIUM, SMALL, LARGE), (), False, 0.0, 0.7, 1.0, Reason.HELD), price=7.0
    )
    # What the policy expects of the one that it would choose stands: of forced ones, their rate.
    assert held(decision(SMALL, expected=0.3), SITUATION, SMALL).expected_satisfaction == 0.3
    with pytest.raises(KeyError):
        held(decision(SMALL), SITUATION, "gone")
    untried = without_trials(SITUATION)
    assert (untried.exploration_draw, untried.is_labelled) == (1.0, False)


def test_trouble_goes_up_to_the_first_that_is_expected_to_be_better() -> None:
    found = upwards(decision(SMALL, LARGE, MEDIUM), SITUATION, SMALL)
    assert found is not None
    assert found.ranking == (LARGE, MEDIUM, SMALL)
    assert (found.expected_satisfaction, found.reason) == (0.9, Reason.TROUBLE)
    assert upwards(decision(SMALL, LARGE, MEDIUM), SITUATION, LARGE) is None


# The gates


def test_a_forced_request_is_no_choice() -> None:
    found = forced(situation((LARGE, 5.0, 0.9), exploration_draw=0.0), 0.7)
    assert found == Decision((LARGE,), (), False, 0.0, 0.7, 1.0, Reason.FORCED)
    with pytest.raises(ValueError, match="too many"):
        forced(SITUATION, 0.7)


@given(shares, shares, shares, shares)
def test_free_and_forced_requests_come_to_the_aim_together(
    aim: float, share: float, rate: float, other: float
) -> None:
    free = free_aim(aim, share, rate)
    assert free_aim(aim, 0.0, rate) == aim
    assert LOWEST <= free_aim(aim, max(share, 1e-9), rate) <= HIGHEST
    low, high = sorted((rate, other))
    assert free_aim(aim, share, low) >= free_aim(aim, share, high)
    assume(LOWEST < free < HIGHEST and share < 0.9)
    assert share * rate + (1.0 - share) * free == pytest.approx(aim)


def judged(*verdicts: tuple[float, bool]) -> ForcedRequests:
    found = ForcedRequests()
    for number, (value, is_forced) in enumerate(verdicts, start=1):
        found.answered(Label(value), number, is_forced=is_forced)
    return found


def test_share_and_rate_are_those_of_the_judged_requests() -> None:
    found = judged((1.0, False), (0.0, True), (1.0, False), (1.0, True))
    assert (found.share, found.rate) == pytest.approx((0.5, 0.5))
    assert ForcedRequests.of(found.plain()) == found
    found.revised(Label(0.0), Label(1.0))
    assert found.rate == pytest.approx(1.0)
    rare = judged(*[(1.0, False)] * 3)  # a verdict of a rare draw counts more
    rare.answered(Label(0.0, 2.0), 4, is_forced=True, counts=2.0)
    assert (rare.share, rare.rate, rare.weight) == (0.5, 0.0, 2.0)


def test_few_forced_verdicts_are_believed_a_little_and_its_memory_ends() -> None:
    assert judged((1.0, False), (0.0, False)) == ForcedRequests()
    assert ForcedRequests().free_aim(0.8) == 0.8
    assert 0.3 < judged((0.0, True), (1.0, False)).expected(0.8) < 0.8
    assert judged(*[(0.0, True)] * 200).expected(0.8) == pytest.approx(0.0, abs=0.05)
    found = judged(*[(0.0, True)] * (3 * MEMORY), *[(1.0, False)] * (3 * MEMORY))
    assert found.weight == MEMORY
    assert found.share < 0.06
