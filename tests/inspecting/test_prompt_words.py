"""What stands out in a prompt, in words."""

import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.surface import NAMES, read_surface
from litellm_messplus.inspecting.explain import SHOWN, standing_out, traits


def surface(text: str) -> list[float]:
    return list(map(float, read_surface(Conversation.of_text(text))))


def words(text: str) -> list[str]:
    return [trait.words for trait in standing_out(surface(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 22 333", "numbers 3"),
        ("1 22 333", "digits of the longest number 3"),
        ("```\ndef f(): return 1\n```", "marks of code 4"),
        ("привет мир", "share of Cyrillic and Greek 90 %"),
        ("Which of the two is it?", "share of common English words 67 %"),
    ],
)
def test_numbers_are_counted_as_a_person_counts(text: str, expected: str) -> None:
    assert expected in words(text)


def test_what_is_not_there_does_not_stand_out() -> None:
    assert words("") == ["turns 1"]
    assert not any(each.startswith(("tools", "images", "marks of code")) for each in words("hello"))
    assert "share of different words 100 %" not in words("one two")


def test_the_highest_on_their_scale_come_first() -> None:
    numbers = surface("12345678901234567890 " * 40)
    shares = [trait.share for trait in standing_out(numbers)]

    assert shares == sorted(shares, reverse=True)
    assert len(shares) == SHOWN
    assert sorted(trait.name for trait in traits(numbers)) == sorted(NAMES)
