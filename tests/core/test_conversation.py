"""A prompt that is too long loses its middle, and the last turn loses nothing before all else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation, Turn, middle_left_out, shortened

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
conversations = st.builds(
    Conversation,
    st.lists(st.builds(Turn, st.sampled_from(["system", "user"]), texts), max_size=5).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)
sizes = st.integers(1, 120)


def conversation(*turns: str, tools: tuple[str, ...] = ()) -> Conversation:
    return Conversation(tuple(Turn("user", text) for text in turns), tools)


def test_the_text_is_tools_then_turns_of_which_the_last_is_to_be_answered() -> None:
    chat = conversation("be brief", "hello", tools=("search",))
    assert (chat.text, chat.last) == ("search\nbe brief\nhello", "hello")
    assert conversation(tools=("search",)).last == ""
    whole = Conversation.of_text("hello\nyou")
    assert whole.text == whole.last == "hello\nyou"


@given(conversations, sizes, sizes)
def test_what_fits_is_read_and_no_more(found: Conversation, characters: int, head: int) -> None:
    read = shortened(found, characters, head)
    assert len(read) <= characters
    assert (read == found.text) == (len(found.text) <= characters)


@given(conversations, sizes, sizes)
def test_a_fitting_last_turn_is_read_whole(found: Conversation, left: int, head: int) -> None:
    characters = len(found.last) + left - 1
    assert shortened(found, characters, head).endswith(found.last)


@given(conversations, st.integers(1, 50), st.integers(1, 50))
def test_reading_begins_as_the_conversation_does(found: Conversation, left: int, head: int) -> None:
    room = min(left, head)
    characters = len(found.last) + 1 + left
    assert shortened(found, characters, head)[:room] == found.text[:room]


@given(conversations, st.floats(0.0, 1.0, exclude_max=True), sizes)
def test_room_is_used(found: Conversation, share: float, head: int) -> None:
    """All of it: what the last turn leaves too is filled, where a word can still be set off."""
    characters = int(share * len(found.text))
    alone = len(found.last) in (characters - 1, characters)
    expected = len(found.last) if alone else characters
    assert len(shortened(found, characters, head)) == expected


@pytest.mark.parametrize(
    ("characters", "read"),
    [
        (23, "rule words old new\nlast"),
        (18, "rul s old new\nlast"),
        (8, "rul\nlast"),
        (6, "r\nlast"),
        (5, "last"),
        (4, "last"),
        (3, "las"),
    ],
)
def test_by_hand(characters: int, read: str) -> None:
    """A beginning of three characters at most, a space, and what came just before the last."""
    assert shortened(conversation("rule words old new", "last"), characters, head=3) == read


def test_a_last_turn_beyond_all_room_keeps_its_beginning_and_end() -> None:
    read = shortened(conversation("rules", "first, middle, last"), 11, head=5)
    assert read == "first  last"


@pytest.mark.parametrize(
    ("characters", "read"), [(9, "abcdefghi"), (8, "ab efghi"), (4, "ab i"), (3, "abc"), (1, "a")]
)
def test_the_middle_is_what_is_left_out(characters: int, read: str) -> None:
    assert middle_left_out("abcdefghi", characters, head=2) == read
