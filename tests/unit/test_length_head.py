"""The length head: what the prompt tells of the length of its answer, whoever writes it."""

import numpy as np
import pytest

from litellm_messplus.prediction.length_head import LARGEST, LengthHead
from tests.unit.builders import pair

LONG, SHORT = pair(1, 0), pair(-1, 0)


def taught(labels: int) -> LengthHead:
    head = LengthHead(2)
    for number in range(labels):
        head.learn(SHORT if number % 2 else LONG, 0.5 if number % 2 else 2.0)
    return head


def test_before_the_first_answer_every_prompt_is_the_average_one() -> None:
    assert LengthHead(2).multiple(LONG) == 1.0


def test_it_comes_to_know_which_prompts_have_long_answers() -> None:
    head = taught(200)
    assert head.multiple(LONG) == pytest.approx(2.0, rel=0.1)
    assert head.multiple(SHORT) == pytest.approx(0.5, rel=0.1)


def test_features_that_came_too_late_tell_nothing() -> None:
    assert taught(200).multiple(None) == 1.0


def test_no_prompt_multiplies_by_more_than_the_bound() -> None:
    head = LengthHead(2)
    for _ in range(500):
        head.learn(LONG, 1e9)
        head.learn(SHORT, 1e-9)
    assert head.multiple(LONG) == pytest.approx(np.exp(LARGEST))
    assert head.multiple(SHORT) == pytest.approx(np.exp(-LARGEST))


def test_an_empty_answer_teaches_nothing() -> None:
    head = taught(3)
    before = {name: array.tobytes() for name, array in head.arrays().items()}
    head.learn(LONG, 0.0)
    assert {name: array.tobytes() for name, array in head.arrays().items()} == before


def test_what_was_saved_goes_on_exactly() -> None:
    head, loaded = taught(45), LengthHead(2)
    loaded.load({name: array.copy() for name, array in head.arrays().items()})
    for one in (head, loaded):
        one.learn(LONG, 3.0)
    assert loaded.multiple(SHORT) == head.multiple(SHORT)
    assert {n: a.tobytes() for n, a in loaded.arrays().items()} == {
        n: a.tobytes() for n, a in head.arrays().items()
    }
