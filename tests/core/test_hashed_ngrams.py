"""The embedded encoder takes any text, always gives the same vector, and is bounded in work."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation, Features, Turn
from litellm_messplus.core.hashed_ngrams import WORD_BUCKETS, HashedNgrams

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)

PINNED = {
    10: 0.3162,
    31: -0.3162,
    53: -0.3162,
    85: 0.6325,
    95: 0.3162,
    186: 0.3162,
    247: -0.3162,
    252: 0.184,
    253: 0.175,
    254: 0.875,
    255: 0.5,
}


def encode(text: str) -> Features:
    """Of one text."""
    features: Features = HashedNgrams().encode([text])[0]
    return features


@given(any_text)
def test_any_text_becomes_a_finite_float32_vector_of_the_stated_dimension(text: str) -> None:
    features = encode(text)
    assert features.shape == (HashedNgrams.dimension,) == (256,)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    length = np.linalg.norm(features[:WORD_BUCKETS].astype(np.float64))
    assert length == pytest.approx(1.0, abs=1e-6) or length == 0.0


WORDS = slice(0, WORD_BUCKETS)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("  what   is\n\t17 + 25 ?  ", "what is 17+25?", True),
        ("dog bites man", "Man BITES dog", True),
        ("dog bites man", "dog bites cat", False),
        ("", " \n", True),
        ("", "\ud800 word \x00", False),
    ],
    ids=["spaces", "order and case", "words", "no words", "garbled words"],
)
def test_words_matter_and_no_spaces_order_or_case(one: str, other: str, is_same: bool) -> None:
    assert np.array_equal(encode(one)[WORDS], encode(other)[WORDS]) == is_same


def test_a_hundred_thousand_characters_cost_no_more_than_ten_thousand() -> None:
    """The middle is not read: two prompts that differ only there are the same."""
    huge = "begin " * 10_000 + "middle" + " end" * 10_000
    started = time.process_time()
    features = encode(huge)
    assert time.process_time() - started < 0.5
    assert np.array_equal(features, encode(huge.replace("middle", "centre")))
    assert not np.array_equal(features, encode("x" + huge))
    assert not np.array_equal(features, encode(huge + "x"))


def test_the_meaning_of_the_features_is_pinned() -> None:
    """Logs keep vectors under the encoder's name: who changes a value must change the name.
    They are the same in every process, whatever its hash seed."""
    features = encode("Reverse: a b, a\n7?")
    buckets = {int(at): round(float(features[at]), 4) for at in features.nonzero()[0]}
    assert HashedNgrams().name == "hashed-ngrams-3"
    assert buckets == PINNED


@given(any_text)
def test_a_prompt_of_one_turn_is_read_as_it_is(text: str) -> None:
    assert HashedNgrams().read(Conversation.of_text(text)) == text


def test_the_length_of_one_huge_turn_counts_though_its_middle_is_not_read() -> None:
    long, longer = ("begin " + "word " * count + "end?" for count in (2_000, 20_000))
    read = [HashedNgrams().read(Conversation.of_text(text)) for text in (long, longer)]
    features = HashedNgrams().encode(read)
    assert features[1, 252] > features[0, 252] == pytest.approx(np.log1p(len(long)) / 16)


def test_a_long_last_turn_is_read_whole_where_its_end_alone_would_have_been() -> None:
    last = "Which of these? " + "an option " * 550
    before = Turn("system", "Be brief. " * 1_000)
    read = HashedNgrams().read(Conversation((before, Turn("user", last))))
    assert read.startswith("Be brief.")
    assert read.endswith("\n" + last)
    assert len(read) == 6_000
