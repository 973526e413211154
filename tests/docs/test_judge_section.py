"""What `docs/labels.md` says of the judge is what the code does."""

import re

import pytest
import yaml

from litellm_messplus.labels.agreement import ENOUGH
from litellm_messplus.labels.judge.judge import GATHER_SECONDS
from litellm_messplus.labels.judge.prompts import CONVERSATION_CHARACTERS
from litellm_messplus.settings.labels import RUBRIC
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.judging import AGREEMENT_WINDOW
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "labels.md")


def test_the_default_rubric_is_quoted_whole() -> None:
    quoted = [line[2:] for line in PAGE.text.splitlines() if line.startswith("> ")]

    assert RUBRIC in " ".join(quoted)


@pytest.mark.parametrize(
    "words",
    [
        f"{CONVERSATION_CHARACTERS:,} characters",
        f"up to {GATHER_SECONDS:.0f} seconds",
        f"newest {AGREEMENT_WINDOW:,} such calls",
        f"From {ENOUGH} such calls on",
    ],
)
def test_numbers_are_those_of_the_code(words: str) -> None:
    assert words in re.sub(r"\s+", " ", PAGE.text)


def test_the_example_can_be_honoured() -> None:
    (example,) = (
        yaml.safe_load(block.code)
        for block in PAGE.blocks
        if block.language == "yaml" and "Grade" in block.headings
    )
    settings = load_settings(example)

    zoo = settings.zoos["llama"]
    assert [zoo.level(name).label_rate for name in ("default", "gold")] == [0.05, 0.2]
