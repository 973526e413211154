"""What a call is expected to cost, and how that follows what calls did cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import TokenPrice, average
from litellm_messplus.costs.token_estimator import MEMORY, TokenEstimator


def test_a_price_counts_prompt_and_completion_apart() -> None:
    assert TokenPrice(2.0, 3.0).of(10, 100) == 320.0


def test_zero_is_a_price() -> None:
    assert TokenPrice(0.0, 0.0).of(10, 100) == 0.0


def test_the_average_of_replicas_is_taken_of_each_part() -> None:
    assert average([TokenPrice(1.0, 10.0), TokenPrice(3.0, 40.0)]) == TokenPrice(2.0, 25.0)


def test_one_replica_is_its_own_average() -> None:
    assert average([TokenPrice(0.1, 0.2)]) == TokenPrice(0.1, 0.2)


def test_there_is_no_average_of_nothing() -> None:
    with pytest.raises(ValueError, match="no prices"):
        average([])


def test_before_the_first_call_four_characters_are_a_token_and_an_answer_has_a_hundred() -> None:
    estimator = TokenEstimator()
    assert estimator.tokens_of(40) == 10.0
    assert estimator.completion_tokens.value == 100.0


def test_the_first_call_replaces_the_guess() -> None:
    estimator = TokenEstimator()
    estimator.observe(prompt_characters=30, prompt_tokens=10, completion_tokens=7)
    assert estimator.tokens_of(60) == 20.0
    assert estimator.completion_tokens.value == 7.0


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=MEMORY))
def test_the_running_mean_is_the_mean(completions: list[int]) -> None:
    estimator = TokenEstimator()
    for tokens in completions:
        estimator.observe(40, 10, tokens)
    assert estimator.completion_tokens.value == pytest.approx(sum(completions) / len(completions))


def test_the_mean_follows_a_drift_however_long_the_past() -> None:
    estimator = TokenEstimator()
    for _ in range(5_000):
        estimator.observe(40, 10, 10)
    for _ in range(3 * MEMORY):
        estimator.observe(40, 10, 500)
    assert estimator.completion_tokens.value > 450


@pytest.mark.parametrize(("characters", "tokens"), [(0, 10), (40, 0), (0, 0)])
def test_a_ratio_that_means_nothing_is_not_learned(characters: int, tokens: int) -> None:
    """An image has no characters; an endpoint may report no prompt tokens: no division by zero."""
    estimator = TokenEstimator()
    estimator.observe(characters, tokens, 50)
    assert estimator.tokens_of(40) == 10.0
    assert estimator.completion_tokens.value == 50.0


def test_an_empty_prompt_has_no_tokens() -> None:
    assert TokenEstimator().tokens_of(0) == 0.0
