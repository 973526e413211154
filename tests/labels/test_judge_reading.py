"""A reply holds exactly one verdict for each answer, or it is nonsense; nothing is guessed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.judge.prompts import LONGEST_REPLY, NonsenseError, grades
from tests.labels.judging import says

TWO = says({"answer_1": True, "answer_2": False})


def verdict(satisfied: Any) -> dict[str, Any]:
    return {"reason": "so", "satisfied": satisfied}


@pytest.mark.parametrize(
    "reply",
    [
        TWO,
        f"```json\n{TWO}\n```",
        f"<think>\nTwo sets: {{1, 2}} and {{}}.\n</think>\nHere:\n{TWO}\nGlad to help {{:}}",
        f"{TWO}\n\n```json\n{TWO}\n```",
        json.dumps({"grades": json.loads(TWO)}),
        json.dumps({"answer_2": verdict(0), "answer_1": verdict(1.0)}),
        json.dumps({"answer_1": {"satisfied": True}, "answer_2": {"satisfied": False}}),
    ],
    ids=[
        "plain",
        "fenced",
        "with thoughts around",
        "said twice",
        "wrapped",
        "numbers",
        "without reasons",
    ],
)
def test_verdicts_are_found_whatever_stands_around_them(reply: str) -> None:
    assert [grade.value for grade in grades(reply, 2)] == [1.0, 0.0]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Both are fine.",
        TWO[:-2],
        says({"answer_1": True}),
        says({"answer_1": True, "answer_2": True, "answer_3": True}),
        says({"answer_0": True, "answer_1": True}),
        json.dumps({"answer_1": verdict("yes"), "answer_2": verdict(True)}),
        json.dumps({"answer_1": verdict(None), "answer_2": verdict(True)}),
        json.dumps({"answer_1": verdict(1.5), "answer_2": verdict(True)}),
        json.dumps({"answer_1": verdict(-0.1), "answer_2": verdict(True)}),
        json.dumps({"answer_1": verdict(float("nan")), "answer_2": verdict(True)}),
        json.dumps({"answer_1": verdict(10**400), "answer_2": verdict(True)}),
        json.dumps({"answer_1": True, "answer_2": True}),
        '{"answer_1": {"satisfied": true}, "answer_1": {"satisfied": false}, '
        '"answer_2": {"satisfied": true}}',
        '{"answer_1": {"satisfied": true, "satisfied": false}, "answer_2": {"satisfied": true}}',
        TWO + says({"answer_1": True, "answer_2": True}),
        '{"answer_1":' * 5000,
        TWO + " " * LONGEST_REPLY,
    ],
    ids=[
        *("empty", "words", "cut off", "one missing", "one too many", "wrong names"),
        *("a word", "null", "above one", "below zero", "no number", "huge", "no objects"),
        *("an answer twice", "a verdict twice", "contradiction", "nested without end", "endless"),
    ],
)
def test_anything_else_is_nonsense(reply: str) -> None:
    with pytest.raises(NonsenseError):
        grades(reply, 2)


@given(st.text(max_size=300), st.integers(1, 3))
def test_any_text_is_read_or_nonsense_and_nothing_worse(text: str, answers: int) -> None:
    try:
        found = grades(text, answers)
    except NonsenseError:
        return
    assert len(found) == answers


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.sampled_from(["answer_1", "satisfied", "reason"]), inner),
    max_leaves=6,
)


@given(JSON)
def test_what_is_read_is_a_share(value: Any) -> None:
    try:
        (grade,) = grades(json.dumps(value), 1)
    except NonsenseError:
        return
    assert 0.0 <= grade.value <= 1.0


def test_the_message_quotes_nothing_of_the_reply() -> None:
    with pytest.raises(NonsenseError) as raised:
        grades("my name is Alice", 1)

    assert "Alice" not in str(raised.value)
