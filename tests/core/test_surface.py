"""What a person sees of a prompt at once: of any text, in bounded work, each number for itself."""

import time
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.core.surface import (
    LONGEST,
    NAMES,
    NUMBERS,
    WIDTH,
    Surface,
    ramps,
    read_surface,
)

texts = st.text(st.characters(exclude_categories=()), max_size=200)
finite = st.floats(-50.0, 50.0, width=32)
OF_COLUMN = np.repeat(range(len(NUMBERS)), [len(number.knots) - 1 for number in NUMBERS])
"""Which number each ramp belongs to."""
surfaces = st.lists(finite, min_size=len(NUMBERS), max_size=len(NUMBERS)).map(
    lambda numbers: np.array(numbers, dtype=np.float32)
)


def seen(text: str) -> Surface:
    return read_surface(Conversation.of_text(text))


def number(surface: Surface, name: str) -> float:
    return float(surface[NAMES.index(name)])


def counted(text: str, name: str) -> float:
    """One of the numbers that are counts, as it was counted."""
    return float(2.0 ** number(seen(text), name)) - 1.0


def moved(one: Conversation, other: Conversation) -> set[str]:
    """The names of the numbers that differ."""
    differs = read_surface(one) != read_surface(other)
    return {name for name, is_other in zip(NAMES, differs, strict=True) if is_other}


ODD = (
    *("", "x", "\0", " \n\t", "\ud800", "\udfff\ud800", "a\ud83d", "👩\u200d👧", "\u200f"),
    Random(0).randbytes(3000).decode("latin-1"),
    "Привет, как дела? Γειά. 你好 世界。こんにちは 안녕하세요 مرحبا שלום",
    *("9" * 5000, "\U0010ffff" * 20_000),
)


@given(st.sampled_from(ODD) | texts)
def test_any_text_has_finite_numbers(text: str) -> None:
    surface = seen(text)
    assert surface.tobytes() == seen(text).tobytes()
    assert not surface.flags.writeable
    assert surface.shape == (len(NUMBERS),)
    assert surface.dtype == np.float32
    assert np.isfinite(surface).all()
    assert (surface >= 0.0).all()
    both = ramps(np.array([surface, read_surface(Conversation(()))]))
    assert np.isfinite(both).all()
    assert both[0].tolist() == ramps(surface).tolist()


def test_of_a_long_prompt_only_the_two_ends_are_read() -> None:
    """All but its length, which is counted whole."""
    ends = "Sum up: 12 + 30" + " word" * LONGEST, " word" * LONGEST + " In one line?"
    one, other = (seen(ends[0] + middle * 1_000_000 + ends[1]) for middle in ("x", "7 "))
    assert one.tolist() != other.tolist()
    differs = {name for name, a, b in zip(NAMES, one, other, strict=True) if a != b}
    assert differs == {"characters"}


def test_ten_megabytes_take_no_longer_than_its_bound() -> None:
    short, long = "word 17. " * 1000, "word 17. " * 1_200_000
    for text in (short, long):
        conversation = Conversation.of_text(text)
        assert conversation.text  # joined beforehand: the router needs it anyway
        seconds = []
        for _ in range(5):
            started = time.thread_time()  # of computing, whatever else the machine does
            read_surface(conversation)
            seconds.append(time.thread_time() - started)
        assert min(seconds) < 0.05


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("12 apples and 345 pears", "digits", 5),
        ("12 apples and 345 pears", "numbers", 2),
        ("12 apples and 345 pears", "digits of the longest number", 3),
        ("12 apples and 345 pears", "characters", 23),
        ("12 apples and 345 pears", "words", 5),
        ("12 apples and 345 pears", "characters of the longest word", 6),
        ("12 apples and 345 pears", "characters of the average word", 3.8),
        ("Who? What?", "question marks", 2),
        ("Who? What?", "capitals", 2),
        ("a\nb\ncde", "lines", 2),
        ("a\nb\ncde", "characters of the last line", 3),
        ("aab", "different characters", 2),
        ("```\ndef f():\n    return x\n```", "marks of code", 4),
        ("1 + 2 = 3", "operators", 2),
        ("(a, [b])", "brackets", 4),
        ("(a, [b])", "commas", 1),
        ("'a' \"b\"", "quotes", 4),
        ("$x_1$ # |", "markup", 5),
        ("A. B! C; D:", "stops", 4),
    ],
)
def test_each_count_is_of_what_its_name_says(text: str, name: str, count: float) -> None:
    assert counted(text, name) == pytest.approx(count, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "name", "share"),
    [
        ("the the THE cat", "share of different words", 0.5),
        ("the cat is on", "share of common English words", 0.75),
        ("Привет", "share of Cyrillic and Greek", 1.0),
        ("ab你好", "share of Chinese, Japanese and Korean", 0.5),
        ("مرحبا", "share of Arabic and Hebrew", 1.0),
        ("abé", "share beyond ASCII", 0.5),  # of the bytes
        ("abc", "share beyond ASCII", 0.0),
        ("", "share of different words", 0.0),
    ],
)
def test_each_share_is_of_what_its_name_says(text: str, name: str, share: float) -> None:
    assert number(seen(text), name) == pytest.approx(share)


IN_TEXT = {
    *("lines", "words", "characters of the average word", "different characters"),
    "characters before the last turn",
}
CHAT = Conversation((Turn("user", "Hi"), Turn("assistant", "Hello"), Turn("user", "And?")))


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (replace(CHAT, images=1), {"images"}),
        (replace(CHAT, attachments=2), {"other attachments"}),
        (replace(CHAT, asks_json=True), {"JSON asked for"}),
        (
            replace(CHAT, turns=(Turn("user", "Hi\nHello"), Turn("user", "And?"))),
            {"turns"},
        ),
        (replace(CHAT, tools=("ab",)), {"tools", "characters", *IN_TEXT}),
    ],
    ids=["images", "attachments", "JSON", "turns", "tools, whose words are part of the text"],
)
def test_what_comes_along_moves_its_own_alone(changed: Conversation, names: set[str]) -> None:
    assert moved(CHAT, changed) == names


@given(surfaces)
def test_every_ramp_is_between_zero_and_one(surface: Surface) -> None:
    found = ramps(surface)
    assert found.shape == (WIDTH,)
    assert found.dtype == np.float32
    assert ((found >= 0.0) & (found <= 1.0)).all()


@given(surfaces, st.integers(0, len(NUMBERS) - 1), st.floats(0.0, 20.0, width=32))
def test_ramps_rise_with_their_own_number_alone(surface: Surface, place: int, more: float) -> None:
    higher = surface.copy()
    higher[place] += np.float32(more)
    before, after = ramps(surface), ramps(higher)
    own = place == OF_COLUMN
    assert (after[own] >= before[own]).all()
    assert (after[~own] == before[~own]).all()


@pytest.mark.parametrize("place", range(len(NUMBERS)), ids=NAMES)
def test_each_ramp_rises_from_one_knot_to_the_next(place: int) -> None:
    knots = NUMBERS[place].knots
    surface = np.zeros((len(knots), len(NUMBERS)), np.float32)
    surface[:, place] = knots
    found = ramps(surface)[:, place == OF_COLUMN]
    np.testing.assert_allclose(found, np.tri(len(knots), len(knots) - 1, -1), atol=1e-5)


@pytest.mark.parametrize(
    "shape", [(), (0,), (len(NUMBERS) - 1,), (WIDTH,), (3, len(NUMBERS) + 1)], ids=str
)
def test_numbers_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="not a surface"):
        ramps(np.zeros(shape, np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    surface = seen("x").copy()
    surface[3] = bad
    with pytest.raises(ValueError, match="finite"):
        ramps(surface)
