"""What a call will use, from what calls used before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.usage import MEMORY, TokenEstimator


def test_the_first_call_replaces_the_guess() -> None:
    estimator = TokenEstimator()
    assert estimator.characters_per_token.value == 4.0
    assert (estimator.completion_tokens.value, estimator.seconds.value) == (100.0, 1.0)
    for seconds in (2.0, None, 4.0):
        estimator.observe(30, 10, 7, seconds)
    assert estimator.characters_per_token.value == 3.0
    assert (estimator.completion_tokens.value, estimator.seconds.value) == (7.0, 3.0)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=MEMORY))
def test_the_running_mean_is_the_mean_and_follows_a_drift(completions: list[int]) -> None:
    estimator = TokenEstimator()
    for tokens in completions:
        estimator.observe(40, 10, tokens)
    assert estimator.completion_tokens.value == pytest.approx(sum(completions) / len(completions))
    for _ in range(5 * MEMORY):
        estimator.observe(40, 10, 20_000)
    assert estimator.completion_tokens.value > 19_000


@pytest.mark.parametrize(("characters", "tokens"), [(0, 10), (40, 0), (0, 0)])
def test_a_ratio_that_means_nothing_is_not_learned(characters: int, tokens: int) -> None:
    """An image has no characters; an endpoint may report no prompt tokens: no division by zero."""
    estimator = TokenEstimator()
    estimator.observe(characters, tokens, 50)
    assert (estimator.characters_per_token.value, estimator.completion_tokens.value) == (4.0, 50.0)
