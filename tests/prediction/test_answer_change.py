"""Answers that begin to look worse than usual raise a suspicion before any label does."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.prediction.answer import ANSWER_NUMBERS
from litellm_messplus.prediction.answer_heads import Turn
from litellm_messplus.prediction.change import FULL, AnswerTest
from litellm_messplus.prediction.head import Label
from litellm_messplus.prediction.predictor import Predictor, Seen
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import NUMBERS

PROMPT = Prompt(None, np.zeros(len(NUMBERS), np.float32))
OTHER = np.zeros(len(ANSWER_NUMBERS), np.float32)
GOOD, BAD = OTHER.copy(), OTHER.copy()
GOOD[0], BAD[0] = 6.0, 2.0


def shown(mean: float, spread: float, count: int, seed: int = 0) -> list[float]:
    draws = random.Random(f"{seed} {mean}")
    return [draws.gauss(mean, spread) for _ in range(count)]


def after(showed: list[float], *, is_proved: bool = True) -> AnswerTest:
    test = AnswerTest()
    for each in showed:
        test.add(each, is_proved=is_proved)
    return test


@pytest.mark.parametrize("usual", [0.0, -0.05, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_a_drop_is_suspected_within_a_hundred_answers_whatever_is_usual(
    usual: float, seed: int
) -> None:
    test = after(shown(usual, 0.15, 1500, seed))
    assert test.suspicion < 0.75
    found = []
    for showed in shown(usual - 0.3, 0.2, 100, seed):
        test.add(showed, is_proved=True)
        found.append(test.suspicion)
    assert max(found) == 1.0


def test_ten_thousand_answers_as_usual_and_better_ones_raise_none() -> None:
    test, most = AnswerTest(), 0.0
    for showed in shown(-0.03, 0.15, 10_000):
        test.add(showed, is_proved=True)
        most = max(most, test.suspicion)
    assert most < 1.0
    for showed in shown(0.2, 0.15, 200):
        test.add(showed, is_proved=True)
    assert test.suspicion == 0.0


def test_what_stays_different_becomes_usual() -> None:
    changed = [*shown(0.0, 0.15, 500), *shown(-0.3, 0.15, 2500)]
    assert after(changed[:600]).suspicion == 1.0
    assert after(changed).suspicion < 0.75


def test_nothing_is_suspected_while_answers_have_not_predicted_labels() -> None:
    changed = [*shown(0.0, 0.15, 500), *shown(-0.3, 0.15, 100)]
    assert after(changed, is_proved=False).suspicion == 0.0


@given(st.lists(st.floats(-1.0, 1.0), max_size=80), st.booleans())
def test_it_is_between_nothing_and_all_and_continues_exactly_from_its_numbers(
    showed: list[float], is_proved: bool
) -> None:
    test = after(showed, is_proved=is_proved)
    assert 0.0 <= test.suspicion <= 1.0
    assert test.evidence <= FULL
    copy = AnswerTest.of(test.numbers())
    for each in (copy, test):
        each.add(-0.5, is_proved=True)
    assert copy == test


def learned() -> Predictor:
    """A predictor whose answers of one look satisfy, and of the other do not."""
    predictor = Predictor(("small", "large"), 2)
    for number in range(600):
        satisfied = float(number % 5 > 0)
        answer = GOOD if satisfied else BAD
        predictor.read("small", PROMPT, answer)
        call = f"call-{number}"
        predictor.learn("small", call, call, PROMPT, Label(satisfied), Seen(answer))
    return predictor


def test_answers_that_look_worse_make_their_model_suspected_and_labels_clear_it() -> None:
    predictor = learned()
    assert predictor.suspicion < 0.75
    for _ in range(60):
        predictor.read("small", PROMPT, BAD)
    assert [test.suspicion for test in predictor.answer_changes] == [1.0, 0.0]
    assert predictor.suspicion == 1.0
    satisfaction = predictor.satisfaction(PROMPT)
    predictor.read("small", PROMPT, BAD)
    assert predictor.satisfaction(PROMPT) == satisfaction  # only labels change a prediction
    for number in range(80):  # they show a change: what was usual before says nothing any more
        call = f"later-{number}"
        predictor.learn("small", call, call, PROMPT, Label(0.0))
    assert predictor.changes[0].change is not None
    assert predictor.answer_changes[0] == AnswerTest()


def test_second_answers_are_not_compared_with_the_rest() -> None:
    predictor = learned()
    before = [test.numbers() for test in predictor.answer_changes]
    predictor.read("small", PROMPT, BAD, Turn.SECOND)
    assert [test.numbers() for test in predictor.answer_changes] == before


def test_a_suspicion_is_in_views_and_snapshots_and_goes_with_its_model() -> None:
    predictor = learned()
    for _ in range(60):
        predictor.read("small", PROMPT, BAD)
    viewed, loaded = Predictor(("small", "large"), 2), Predictor(("small", "large"), 2)
    viewed.load_view(*predictor.view())
    loaded.load(predictor.plain(), predictor.arrays())
    assert viewed.suspicion == loaded.suspicion == 1.0
    loaded.add("new")
    loaded.remove("small")
    assert loaded.suspicion == 0.0
    assert len(loaded.answer_changes) == 2
