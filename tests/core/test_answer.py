"""The surface of an answer: any text has finite numbers, and each shows what its name says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.answer import ANSWER_NUMBERS, Answer, read_answer


def number(answer: Answer, name: str) -> float:
    return float(read_answer(answer)[ANSWER_NUMBERS.index(name)])


@given(st.text(), st.integers(0, 20), st.booleans())
def test_only_what_was_not_given_is_not_known(text: str, tools: int, was_cut: bool) -> None:
    read = read_answer(Answer(text, tools, was_cut))
    assert read.shape == (len(ANSWER_NUMBERS),)
    assert np.isfinite(read).tolist() == [True] * 19 + [False]
    assert number(Answer(text, score=0.0), "own score") == 0.0
    assert not read.flags.writeable


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("is JSON", '```json\n{"answer": 4}\n```', '{"answer": 4'),
        ("names its result", "So the answer is 4.", "It is 4."),
        ("ends closed", "It is 4.", "It is 4 and then"),
        ("hedges", "Wait, however, maybe 4.", "It is 4."),
        ("refusals", "I'm sorry, I cannot help.", "It is 4."),
        ("share of repeated lines", "again\nagain\nagain", "one\ntwo\nthree"),
        ("place of the result", "It is 4. Therefore: 4", "Therefore 4. It is 4."),
    ],
)
def test_a_number_tells_two_answers_apart(name: str, text: str, other: str) -> None:
    assert number(Answer(text), name) > number(Answer(other), name)


def test_tool_calls_and_the_limit_of_length_are_read() -> None:
    assert number(Answer("", tools=3), "tool calls") == 2.0
    assert number(Answer("", was_cut=True), "was cut off") == 1.0


def test_of_a_long_answer_only_its_ends_are_read_and_its_length_is_counted() -> None:
    long = "a" * 1500 + "b, " * 100_000 + "c" * 1500
    assert number(Answer(long), "commas") == 0.0
    assert number(Answer(long), "characters") == pytest.approx(np.log2(1.0 + len(long)))
    assert number(Answer("abc", characters=1023), "characters") == 10.0


def test_an_answer_of_brackets_is_no_json_and_no_error() -> None:
    assert number(Answer("[" * 1400 + "]" * 1400), "is JSON") in (0.0, 1.0)
    assert number(Answer("[" * 100_000 + "]" * 100_000), "is JSON") == 1.0
