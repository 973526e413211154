"""What share of a candidate's calls takes longer than a limit, learned from its newest calls."""

from random import Random

import numpy as np
import pytest

from litellm_messplus.costs.usage import KEPT, UNKNOWN, Durations

USUAL = 0.05


def timed(*seconds: float, length: float = 1.0) -> Durations:
    found = Durations()
    for each in seconds:
        found.add(length, each)
    return found


def test_a_candidate_that_nobody_has_called_is_taken_to_just_hold_the_limit() -> None:
    assert Durations().late(1.0, 2.0, USUAL) == pytest.approx(USUAL)


def test_the_share_is_that_of_its_own_calls() -> None:
    found = timed(*[1.0] * 75, *[3.0] * 25)
    assert found.late(1.0, 2.0, USUAL) == pytest.approx(0.25, abs=0.01)
    assert found.late(1.0, 4.0, USUAL) < 0.01
    assert found.late(1.0, 0.5, USUAL) > 0.95


def test_a_call_that_takes_just_as_long_as_the_limit_is_in_time() -> None:
    found = timed(*[2.0] * 96)
    assert found.late(1.0, 2.0, 0.0) == 0.0
    assert found.late(1.0, 1.999, 0.0) == pytest.approx(96 / (96 + UNKNOWN))


def test_a_few_calls_are_believed_by_halves() -> None:
    assert 0.3 < timed(9.0, 9.0, 9.0).late(1.0, 2.0, USUAL) < 0.5


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


def test_where_all_answers_were_equally_long_nothing_is_said_of_longer_ones() -> None:
    assert timed(1.0, 2.0, 3.0).elasticity == 0.0


def test_an_answer_of_no_length_or_no_time_teaches_nothing() -> None:
    found = timed(0.0)
    found.add(0.0, 1.0)
    assert len(found) == 0


def test_the_newest_calls_alone_are_kept_so_a_model_that_became_faster_is_found_out() -> None:
    found = timed(*[9.0] * 1000, *[1.0] * KEPT)
    assert len(found) == KEPT
    assert found.late(1.0, 2.0, USUAL) < 0.01


def test_many_requests_at_once_are_told_the_same_as_one() -> None:
    random, found = Random(1), Durations()
    for _ in range(KEPT):
        found.add(random.uniform(0.2, 5.0), random.uniform(0.2, 5.0))
    lengths = np.array([0.1, 0.5, 1.0, 2.0, 10.0])
    assert found.late_of_many(lengths, 1.5, USUAL).tolist() == pytest.approx(
        [found.late(length, 1.5, USUAL) for length in lengths.tolist()]
    )


def test_it_comes_back_from_json_as_it_was() -> None:
    found = timed(0.1, 0.7, 3.0, length=1.7)
    loaded = Durations(*found.plain())
    assert loaded.plain() == found.plain()
    assert loaded.late(2.0, 1.0, USUAL) == found.late(2.0, 1.0, USUAL)
