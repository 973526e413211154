"""`reference` compares the answer with what the request brought along."""

from typing import Any

import pytest

from litellm_messplus.labels.checks.check import Score
from litellm_messplus.labels.checks.shipped import METADATA_KEY, ReferenceCheck
from litellm_messplus.runtime.counters import Counters
from tests.support.checking import GARBAGE, SameProcess, ended


@pytest.fixture
def counted() -> Counters:
    return Counters()


@pytest.fixture
def check(counted: Counters) -> ReferenceCheck:
    return ReferenceCheck(SameProcess(), counted)


def with_reference(reference: Any, text: str = "It is 42.") -> Any:
    return ended(text, metadata={METADATA_KEY: reference})


@pytest.mark.parametrize(
    ("reference", "value", "reason"),
    [
        ("it is 42", 1.0, None),
        ("it is 41", 0.0, "no normalised match"),
        ({"match": "exact", "value": "It is 42."}, 1.0, None),
        ({"match": "exact", "value": "it is 42"}, 0.0, "no exact match"),
        ({"match": "normalised", "value": "IT IS 42"}, 1.0, None),
        ({"match": "regex", "value": r"\b4\d\b"}, 1.0, None),
        ({"match": "regex", "value": "^42"}, 0.0, "no regex match"),
        ({"match": "numeric", "value": 42}, 1.0, None),
        ({"match": "numeric", "value": 42.5}, 0.0, "no numeric match"),
        ({"match": "numeric", "value": 42.5, "tolerance": 0.5}, 1.0, None),
        ({"match": "numeric", "value": 42.5, "tolerance": {"absolute": 0.5}}, 1.0, None),
        ({"match": "numeric", "value": 40, "tolerance": {"relative": 0.05}}, 1.0, None),
        (
            {"match": "numeric", "value": 40, "tolerance": {"relative": 0.04}},
            0.0,
            "no numeric match",
        ),
        ({"match": "numeric", "value": -42, "tolerance": {"relative": 2.0}}, 1.0, None),
    ],
)
async def test_a_match_satisfies_and_the_reason_quotes_nothing(
    check: ReferenceCheck, counted: Counters, reference: Any, value: float, reason: str | None
) -> None:
    assert await check.check(with_reference(reference)) == Score(value, reason)
    assert counted.as_dict() == {}


async def test_without_a_reference_or_an_answer_it_says_nothing(
    check: ReferenceCheck, counted: Counters
) -> None:
    assert await check.check(ended()) is None
    assert await check.check(ended(None, metadata={METADATA_KEY: "42"})) is None
    assert counted.as_dict() == {}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (42, "neither a text nor an object"),
        (["secret"], "neither a text nor an object"),
        ("", "value: String should have at least 1 character"),
        ("?!", "its value is none that normalised can match"),
        ({}, "match is none of exact, normalised, regex, numeric"),
        ({"match": "secret", "value": "42"}, "match is none of"),
        ({"match": ["secret"], "value": "42"}, "match is none of"),
        ({"match": "exact"}, "value: Field required"),
        ({"match": "exact", "value": 42}, "value: Input should be a valid string"),
        ({"match": "exact", "value": "42", "secret": 1}, "it has a key that is not known"),
        ({"match": "exact", "value": "42", "tolerance": 1}, "it has a key that is not known"),
        ({"match": "regex", "value": "(secret"}, "its value is none that regex can match"),
        ({"match": "numeric", "value": "42"}, "value: Input should be a valid"),
        ({"match": "numeric", "value": True}, "value: Input should be a valid"),
        ({"match": "numeric", "value": float("nan")}, "value: "),
        ({"match": "numeric", "value": 42, "tolerance": -1}, "tolerance: "),
        ({"match": "numeric", "value": 42, "tolerance": {"secret": 1}}, "tolerance"),
    ],
    ids=str,
)
async def test_a_malformed_reference_is_counted_and_logged_with_the_reason_alone(
    check: ReferenceCheck,
    counted: Counters,
    caplog: pytest.LogCaptureFixture,
    reference: Any,
    reason: str,
) -> None:
    assert await check.check(with_reference(reference)) is None

    assert counted.as_dict() == {"references_malformed": 1}
    assert reason in caplog.messages[0]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:8]))
@pytest.mark.parametrize("match", ["exact", "normalised", "regex", "numeric"])
async def test_garbage_matches_nothing(check: ReferenceCheck, text: str, match: str) -> None:
    value = 42 if match == "numeric" else "forty two"
    found = await check.check(with_reference({"match": match, "value": value}, text))

    assert found == Score(0.0, f"no {match} match")


IS_TEXT = [text for text in GARBAGE if text and "\ud800" not in text]


@pytest.mark.parametrize("text", IS_TEXT, ids=lambda text: ascii(text[:8]))
async def test_garbage_is_matched_exactly_by_itself(check: ReferenceCheck, text: str) -> None:
    assert await check.check(with_reference({"match": "exact", "value": text}, text)) == Score(1.0)
