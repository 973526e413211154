"""What `docs/labels.md` says of checks is what they do."""

import json
from typing import Any

import httpx
import openai
import pytest

from litellm_messplus.labels.checks.check import CallableCheck, Score
from litellm_messplus.labels.checks.shipped import KINDS, METADATA_KEY, ReferenceCheck
from litellm_messplus.runtime.counters import Counters
from tests.support.checking import SameProcess, ended
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "labels.md")
REFERENCES = [
    tuple(code_of(row.cells[column]) or row.cells[column] for column in row.cells)
    for row in PAGE.under("A reference")
]


def example(heading: str) -> str:
    (block,) = [
        block
        for block in PAGE.blocks
        if block.language == "python" and block.headings[-1] == heading
    ]
    return block.code


def sent(code: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The body that an example's OpenAI client sends."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"id": "chatcmpl-1", "choices": []})

    with httpx.Client(transport=httpx.MockTransport(answer)) as transport:
        client = openai.OpenAI
        monkeypatch.setattr(
            openai, "OpenAI", lambda **given: client(**given, http_client=transport)
        )
        exec(code, {})
    (body,) = bodies
    return body


def reference_check() -> ReferenceCheck:
    return ReferenceCheck(SameProcess(), Counters())


@pytest.mark.parametrize(("reference", "answer", "expected"), REFERENCES)
async def test_a_reference_of_the_table_matches_as_it_says(
    reference: str, answer: str, expected: str
) -> None:
    metadata = {METADATA_KEY: json.loads(reference)}

    score = await reference_check().check(ended(answer, metadata=metadata))

    assert score is not None
    assert {1.0: "yes", 0.0: "no"}[score.value] == expected


def test_every_kind_of_match_is_in_the_table() -> None:
    references = [json.loads(reference) for reference, _, _ in REFERENCES]

    assert {given["match"] for given in references if isinstance(given, dict)} == set(KINDS)
    assert any(isinstance(given, str) for given in references)


@pytest.mark.parametrize(("answer", "value"), [("86,400 seconds.", 1.0), ("3600", 0.0)])
async def test_the_reference_of_the_example_is_read(
    monkeypatch: pytest.MonkeyPatch, answer: str, value: float
) -> None:
    metadata = sent(example("A reference"), monkeypatch)["litellm_metadata"]

    score = await reference_check().check(ended(answer, metadata=metadata))

    assert score is not None
    assert score.value == value


async def test_the_function_of_the_example_judges() -> None:
    found: dict[str, Any] = {}
    exec(example("A function of your own"), found)
    check = CallableCheck("no_excuses", found["no_excuses"], timeout_seconds=60.0)

    assert await check.check(ended("42")) == Score(1.0)
    assert await check.check(ended("As a language model, I cannot add.")) == Score(0.0)
