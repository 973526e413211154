"""What `docs/labels.md` says of checks is what they do."""

import json
from typing import Any

import pytest

from litellm_messplus.labels.checks.check import CallableCheck, Score
from litellm_messplus.labels.checks.shipped import ReferenceCheck
from tests.support.checking import ended
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "labels.md")


def examples(heading: str) -> list[str]:
    return [
        block.code
        for block in PAGE.blocks
        if block.language == "python" and block.headings[-1] == heading
    ]


async def test_the_function_of_the_example_judges() -> None:
    found: dict[str, Any] = {}
    (code,) = examples("A function of your own")
    exec(code, found)
    check = CallableCheck("no_excuses", found["no_excuses"], seconds=60.0)

    assert await check.check(ended("42")) == Score(1.0)
    assert await check.check(ended("As a language model, I cannot add.")) == Score(0.0)


async def test_a_reference_is_compared_with_the_whole_answer() -> None:
    (sent,) = examples("A reference")
    metadata = {"messplus_reference": "86400"}
    check = ReferenceCheck()

    assert f'"litellm_metadata": {json.dumps(metadata)}' in sent
    assert await check.check(ended(" 86400.", metadata=metadata)) == Score(1.0)
    assert await check.check(ended("3600", metadata=metadata)) == Score(0.0)
    assert await check.check(ended("86400")) is None


@pytest.mark.parametrize(
    ("reference", "answer", "value"),
    [
        ("New York", "**NEW  york**!", 1.0),
        ("New York", "It is New York.", 0.0),
        (-1.5, "\u22121.5", 1.0),
        ("1.5", "15", 0.0),
        ("-4", "4", 0.0),
        (["42"], "42", None),
    ],
)
async def test_words_and_numbers_are_compared(reference: Any, answer: str, value: Any) -> None:
    found = await ReferenceCheck().check(ended(answer, metadata={"messplus_reference": reference}))

    assert found == (None if value is None else Score(value))
