"""The gates themselves: who passes, what fits, and what is left to aim at."""

from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litellm_messplus.prediction.head import Label
from litellm_messplus.routing.held import (
    HIGHEST,
    LOWEST,
    Answer,
    all_of,
    fits,
    forced,
    free_aim,
    passing,
)
from litellm_messplus.state.account import MEMORY, ForcedRequests
from tests.support.builders import LARGE, SMALL, situation

NO, UNKNOWN, YES = Answer
answers = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(Answer))
shares = st.floats(0.0, 1.0)


def test_who_cannot_take_one_thing_cannot_take_the_request() -> None:
    assert all_of([YES, NO, UNKNOWN]) is NO
    assert all_of([YES, UNKNOWN]) is UNKNOWN
    assert all_of([]) is YES


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"a": YES, "b": NO}, {"a"}),
        ({"a": UNKNOWN, "b": NO}, {"a"}),
        ({"a": YES, "b": UNKNOWN, "c": YES}, {"a", "c"}),
        ({"a": YES, "b": YES}, None),
        ({"a": UNKNOWN, "b": UNKNOWN}, None),
        ({"a": NO, "b": NO}, None),
        ({}, None),
    ],
)
def test_an_unknown_one_passes_only_where_nobody_is_known(
    said: Mapping[str, Answer], found: set[str] | None
) -> None:
    assert passing(said) == found


@given(answers)
def test_nobody_who_answers_no_passes_and_somebody_always_does(said: dict[str, Answer]) -> None:
    found = passing(said)
    if found is not None:
        assert found
        assert {said[name] for name in found} == {max(said.values())}
        assert NO not in {said[name] for name in found}


@pytest.mark.parametrize(
    ("tokens", "answer", "window", "found"),
    [
        (1000, 0, None, YES),
        (1000, 0, 1000, UNKNOWN),
        (1001, 0, 1000, NO),
        (900, 0, 1000, YES),
        (900, 100, 1000, UNKNOWN),
        (800, 119, 1000, YES),
    ],
)
def test_a_prompt_fits_for_sure_with_a_tenth_more_and_its_answer(
    tokens: int, answer: int, window: int | None, found: Answer
) -> None:
    assert fits(tokens, answer, window) is found


def test_a_forced_request_is_no_choice() -> None:
    decision = forced(situation((LARGE, 5.0, 0.9), exploration_draw=0.0), 0.7)
    assert decision.ranking == (LARGE,)
    assert decision.explored == ()
    assert decision.propensity == 1.0
    assert (decision.is_exploration, decision.exploration_probability) == (False, 0.0)
    assert decision.expected_satisfaction == 0.7


def test_more_than_one_is_not_forced() -> None:
    with pytest.raises(ValueError, match="too many"):
        forced(situation((SMALL, 1.0, 0.5), (LARGE, 5.0, 0.9)), 0.7)


@given(shares, shares)
def test_without_forced_requests_the_aim_is_untouched(aim: float, rate: float) -> None:
    assert free_aim(aim, 0.0, rate) == aim


@given(st.floats(0.01, 0.99), st.floats(0.0, 0.9), shares)
def test_free_and_forced_requests_come_to_the_aim_together(
    aim: float, share: float, rate: float
) -> None:
    free = free_aim(aim, share, rate)
    assume(LOWEST < free < HIGHEST)
    assert share * rate + (1.0 - share) * free == pytest.approx(aim)


@given(shares, shares, shares)
def test_what_is_aimed_at_is_a_share(aim: float, share: float, rate: float) -> None:
    assert LOWEST <= free_aim(aim, max(share, 1e-9), rate) <= HIGHEST


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.9), shares, shares)
def test_the_worse_the_forced_ones_the_higher_the_others_aim(
    aim: float, share: float, rate: float, other: float
) -> None:
    low, high = sorted((rate, other))
    assert free_aim(aim, share, low) >= free_aim(aim, share, high)


def judged(*verdicts: tuple[float, bool]) -> ForcedRequests:
    found = ForcedRequests()
    for number, (value, is_forced) in enumerate(verdicts, start=1):
        found.answered(Label(value), number, is_forced=is_forced)
    return found


def test_share_and_rate_are_those_of_the_judged_requests() -> None:
    found = judged((1.0, False), (0.0, True), (1.0, False), (1.0, True))
    assert found.share == pytest.approx(0.5)
    assert found.rate == pytest.approx(0.5)


def test_before_any_forced_verdict_the_state_is_that_of_a_zoo_without() -> None:
    assert judged((1.0, False), (0.0, False)) == ForcedRequests()
    assert ForcedRequests().free_aim(0.8) == 0.8


def test_a_few_forced_verdicts_are_believed_a_little() -> None:
    first = judged((0.0, True), (1.0, False))
    assert 0.3 < first.expected(0.8) < 0.8
    assert judged(*[(0.0, True)] * 200).expected(0.8) == pytest.approx(0.0, abs=0.05)


def test_a_later_verdict_takes_the_place_of_the_one_before() -> None:
    found = judged((1.0, True), (0.0, True))
    found.revised(Label(1.0), Label(0.0))
    assert found.rate == pytest.approx(0.0)


def test_its_memory_ends() -> None:
    found = judged(*[(0.0, True)] * (3 * MEMORY), *[(1.0, False)] * (3 * MEMORY))
    assert found.weight == MEMORY
    assert found.share < 0.06


def test_it_comes_back_from_a_snapshot_as_it_was() -> None:
    found = judged((1.0, False), (0.0, True))
    assert ForcedRequests.of(found.plain()) == found


def test_a_forced_verdict_of_a_rare_draw_counts_more() -> None:
    found = judged(*[(1.0, False)] * 3)
    found.answered(Label(0.0, 2.0), 4, is_forced=True, counts=2.0)

    assert (found.share, found.rate, found.weight) == (0.5, 0.0, 2.0)
