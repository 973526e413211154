"""Whether a question is another one asked again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.implicit import likeness

QUESTION = "What is the capital of France?"

texts = st.text(max_size=80)


@given(texts)
def test_a_text_is_like_itself(text: str) -> None:
    assert likeness(text, text) == 1.0


@given(texts, texts)
def test_likeness_is_mutual_and_a_share(one: str, other: str) -> None:
    assert likeness(one, other) == likeness(other, one)
    assert 0.0 <= likeness(one, other) <= 1.0


def test_case_and_spacing_are_no_difference() -> None:
    assert likeness(QUESTION, "  what is the\n\nCAPITAL of france? ") == 1.0


@pytest.mark.parametrize(
    "again",
    [
        "What is the capital of France??",
        "what's the capital of France?",
        "No, what is the capital of France?",
        "What is the capitol of France?",
    ],
)
def test_the_same_question_in_nearly_the_same_words_is_alike(again: str) -> None:
    assert likeness(QUESTION, again) >= 0.8


@pytest.mark.parametrize(
    "other", ["And of Spain?", "Thanks! How many people live there?", "Draw me a sheep", ""]
)
def test_another_question_is_not(other: str) -> None:
    assert likeness(QUESTION, other) < 0.5


def test_a_very_long_text_is_compared_by_its_beginning() -> None:
    assert likeness("ab" * 500_000, "ab" * 400_000) == 1.0
