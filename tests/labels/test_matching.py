"""When a text matches a reference."""

import unicodedata
from decimal import Decimal
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.checks.worker import last_number, matches, normalised

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15)
PLACES = st.integers(0, 6)
BEFORE = st.sampled_from(["", "The answer is ", "3 + 4 = ", "12 of 30, hence\n", "(", "**", "$"])
AFTER = st.sampled_from(["", ".", " apples", "**", ")", "%", "\n", "!", ", I think", "kg"])


@given(NUMBERS, PLACES, BEFORE, AFTER, st.sampled_from([",", "_", "'", "\u202f", ""]))
def test_a_number_is_found_however_it_is_written(
    number: Decimal, places: int, before: str, after: str, separator: str
) -> None:
    written = f"{number:,.{places}f}".replace(",", separator)

    assert last_number(before + written + after) == Decimal(f"{number:.{places}f}")


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["e", "E", "f", "g"]))
def test_a_number_matches_itself_in_every_format_within_what_that_rounds_away(
    number: float, form: str
) -> None:
    written = f"{number:.6{form}}"
    reference = {"match": "numeric", "value": str(number), "absolute": "1e-6", "relative": "1e-5"}

    assert matches(reference, f"about {written}.") is True


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("First 1, then 2.", "2"),
        ("-1,234.5", "-1234.5"),
        ("x\u22127", "7"),
        ("x = \u22127", "-7"),
        ("1.5e-3", "0.0015"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("3-4", "4"),
        (".5", "0.5"),
        ("... 42", "42"),
        ("...42", "42"),
        ("\\boxed{42}", "42"),
        ("5kg", "5"),
        ("\u0661\u0662", "12"),
        ("H2O", None),
        ("no number", None),
        ("", None),
    ],
)
def test_the_last_number_of_a_text(text: str, number: str | None) -> None:
    assert last_number(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("text", "absolute", "relative", "expected"),
    [
        ("100", "0", "0", True),
        ("100.01", "0", "0", False),
        ("100.01", "0.01", "0", True),
        ("99.99", "0.01", "0", True),
        ("101", "0", "0.01", True),
        ("101.1", "0", "0.01", False),
        ("1e999999999", "5", "0.5", False),
        ("9" * 5000, "5", "0.5", False),
        ("about a hundred", "5", "0.5", False),
    ],
)
def test_how_far_a_number_may_be_off(
    text: str, absolute: str, relative: str, expected: bool
) -> None:
    reference = {"match": "numeric", "value": "100", "absolute": absolute, "relative": relative}

    assert matches(reference, text) is expected


def test_large_whole_numbers_are_told_apart() -> None:
    reference = {"match": "numeric", "value": "9007199254740993", "absolute": "0", "relative": "0"}

    assert matches(reference, "9007199254740993") is True
    assert matches(reference, "9007199254740992") is False


Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
WORDS = st.lists(st.text(st.characters(categories=["L", "N", "S"]), min_size=1), min_size=1)


@given(WORDS, st.sampled_from(get_args(Form)))
def test_case_spaces_punctuation_and_unicode_form_make_no_difference(
    words: list[str], form: Form
) -> None:
    plain = " ".join(words)
    dressed = f"\u00ab {'  '.join(words).casefold()} \u00bb !\n"

    assert normalised(unicodedata.normalize(form, dressed)) == normalised(plain)


@given(st.text())
def test_what_is_normalised_stays_as_it_is(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("  PARIS. ", "Paris", True),
        ("well-known", "well known", True),
        ("Stra\u00dfe", "STRASSE", True),
        ("Paris, France", "Paris", False),
        ("-1.5", "1.5", False),
        ("1.5", "15", False),
        ("\u22121.5", "-1.5", True),
        ("10:30", "1030", False),
        ("(5)", "5", True),
        ("C++", "C", False),
    ],
)
def test_a_normalised_match(text: str, value: str, expected: bool) -> None:
    assert matches({"match": "normalised", "value": value}, text) is expected


def test_an_exact_match_is_of_every_character() -> None:
    assert matches({"match": "exact", "value": "Paris"}, "Paris") is True
    assert matches({"match": "exact", "value": "Paris"}, "Paris ") is False


def test_a_pattern_is_found_anywhere() -> None:
    assert matches({"match": "regex", "value": r"(?i)\bparis\b"}, "It is Paris.") is True
    assert matches({"match": "regex", "value": r"^Paris$"}, "It is Paris.") is False


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<a>x)(?P<a>y)", "[z-a]", "x{99999999999}"])
def test_what_is_no_pattern_matches_neither_way(pattern: str) -> None:
    assert matches({"match": "regex", "value": pattern}, "anything") is None


def test_words_that_leave_nothing_match_neither_way() -> None:
    assert matches({"match": "normalised", "value": " ?! "}, "...") is None
