"""What a call will use, from what calls used before; what share of them takes too long."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.usage import KEPT, MEMORY, UNKNOWN, Durations, TokenEstimator

USUAL = 0.05


def timed(*seconds: float, length: float = 1.0) -> Durations:
    found = Durations()
    for each in seconds:
        found.add(length, each)
    return found


def test_the_share_is_that_of_its_own_calls() -> None:
    found = timed(*[1.0] * 75, *[3.0] * 25)
    assert found.late(1.0, 2.0, USUAL) == pytest.approx(0.25, abs=0.01)
    assert found.late(1.0, 4.0, USUAL) < 0.01
    assert found.late(1.0, 0.5, USUAL) > 0.95
    assert found.elasticity == 0.0  # all answers were equally long
    assert Durations().late(1.0, 2.0, USUAL) == pytest.approx(USUAL)
    assert 0.3 < timed(9.0, 9.0, 9.0).late(1.0, 2.0, USUAL) < 0.5  # a few are believed by halves
    nothing = timed(0.0)
    nothing.add(0.0, 1.0)
    assert len(nothing) == 0


def test_a_call_that_takes_just_as_long_as_the_limit_is_in_time() -> None:
    found = timed(*[2.0] * 96)
    assert found.late(1.0, 2.0, 0.0) == 0.0
    assert found.late(1.0, 1.999, 0.0) == pytest.approx(96 / (96 + UNKNOWN))


@pytest.mark.parametrize(("power", "name"), [(1.0, "per token"), (0.0, "first token alone")])
def test_how_much_a_longer_answer_takes_is_learned(power: float, name: str) -> None:
    random, found = Random(name), Durations()
    for _ in range(KEPT):
        length = random.choice([0.25, 1.0, 4.0])
        found.add(length, length**power * random.uniform(0.9, 1.1))
    assert found.elasticity == pytest.approx(power, abs=0.05)
    if power:
        assert found.late(4.0, 2.0, USUAL) > 0.9
    assert found.late(1.0, 2.0, USUAL) < 0.05


def test_the_newest_calls_alone_are_kept_so_a_model_that_became_faster_is_found_out() -> None:
    found = timed(*[9.0] * 1000, *[1.0] * KEPT)
    assert len(found) == KEPT
    assert found.late(1.0, 2.0, USUAL) < 0.01


SECONDS = st.floats(0.01, 1000.0)


@given(
    st.lists(st.tuples(st.floats(0.1, 10.0), SECONDS), min_size=1, max_size=60), st.floats(0.1, 10)
)
def test_the_tail_is_the_shortest_limit_that_few_enough_calls_exceed(
    calls: list[tuple[float, float]], length: float
) -> None:
    durations, share = Durations(), 0.05
    for each in calls:
        durations.add(*each)
    tail = durations.tail(length, share)
    assert durations.late(length, tail * 1.000001, share) <= share + 1e-12
    assert durations.late(length, tail * 0.999999, share) > share


def test_a_candidate_without_calls_is_not_known_to_be_slow() -> None:
    assert Durations().tail(1.0, 0.05) == 0.0


def test_many_requests_at_once_get_the_same_as_one() -> None:
    random, found = Random(1), Durations()
    for _ in range(KEPT):
        found.add(random.uniform(0.2, 5.0), random.uniform(0.2, 5.0))
    lengths = np.array([0.1, 0.5, 1.0, 2.0, 10.0])
    assert found.late_of_many(lengths, 1.5, USUAL).tolist() == pytest.approx(
        [found.late(length, 1.5, USUAL) for length in lengths.tolist()]
    )
    loaded = Durations(*found.plain())
    assert loaded.plain() == found.plain()
    assert loaded.late(2.0, 1.0, USUAL) == found.late(2.0, 1.0, USUAL)


# Tokens and seconds


def test_the_first_call_replaces_the_guess_of_four_characters_a_token_and_a_hundred_tokens() -> (
    None
):
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
