"""The sample is uniform, the same for everybody, and knows nothing but the request's id."""

from math import sqrt

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.buying import is_drawn
from litellm_messplus.labels.judge.asking import ShownAnswer, shuffled
from litellm_messplus.labels.source import Answer

REQUESTS = [f"{number:032x}" for number in range(1500)]
SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.floats(0.0, 1.0))
def test_the_share_of_the_sample_is_the_rate(seed: int, rate: float) -> None:
    found = sum(is_drawn(seed, request_id, rate) for request_id in REQUESTS)

    deviation = sqrt(rate * (1.0 - rate) * len(REQUESTS))
    assert abs(found - rate * len(REQUESTS)) <= 6.0 * deviation


@given(SEEDS)
def test_a_rate_of_nothing_is_nobody_and_of_one_is_everybody(seed: int) -> None:
    assert not any(is_drawn(seed, request_id, 0.0) for request_id in REQUESTS)
    assert all(is_drawn(seed, request_id, 1.0) for request_id in REQUESTS)


@given(SEEDS, st.text(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_larger_samples_hold_smaller(seed: int, request_id: str, rate: float, other: float) -> None:
    small, large = sorted((rate, other))

    assert is_drawn(seed, request_id, small) <= is_drawn(seed, request_id, large)


@given(SEEDS)
def test_samples_of_two_seeds_have_nothing_to_do_with_each_other(seed: int) -> None:
    both = sum(
        is_drawn(seed, request_id, 0.5) and is_drawn(seed + 1, request_id, 0.5)
        for request_id in REQUESTS
    )

    assert abs(both - 0.25 * len(REQUESTS)) <= 6.0 * sqrt(0.25 * 0.75 * len(REQUESTS))


@given(SEEDS, st.permutations(range(4)))
def test_the_order_hangs_on_the_ids_not_on_who_came_first(seed: int, order: list[int]) -> None:
    answers = [ShownAnswer(f"r.{number}", Answer(f"text {number}")) for number in range(4)]

    assert shuffled(seed, [answers[place] for place in order]) == shuffled(seed, answers)


def test_every_answer_stands_in_every_place_as_often() -> None:
    """So the place of an answer says nothing of which model it is from, or who saw it."""
    places = [
        [
            shown.call_id
            for shown in shuffled(0, [ShownAnswer(f"{r}.{n}", Answer("")) for n in range(3)])
        ].index(f"{r}.0")
        for r in REQUESTS
    ]

    for place in range(3):
        share = places.count(place) / len(places)
        assert abs(share - 1 / 3) <= 6.0 * sqrt(1 / 3 * 2 / 3 / len(places))
