"""What `docs/labels.md` says of the judge is what the code does."""

import re
import sqlite3
from typing import Any

import pytest
import yaml

from litellm_messplus.labels.agreement import ENOUGH
from litellm_messplus.labels.judge.gathering import GATHER_SECONDS
from litellm_messplus.labels.judge.prompt import CONVERSATION_CHARACTERS
from litellm_messplus.proxy.judges import check_judges
from litellm_messplus.settings.labels import RUBRIC
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.audits import AGREEMENT_WINDOW
from tests.docs.counters import counted
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "labels.md")
SECTION = "Labels that are bought"


def rows(column: str) -> list[dict[str, str]]:
    found = [row for row in PAGE.rows if SECTION in row.headings]
    return [row.cells for row in found if column in row.cells]


def test_the_default_rubric_is_quoted_whole() -> None:
    quoted = [line[2:] for line in PAGE.text.splitlines() if line.startswith("> ")]

    assert RUBRIC in " ".join(quoted)


def test_every_counter_of_the_judge_is_described_and_no_other() -> None:
    found = {name for name in counted() if name.startswith("judge_")}

    assert {code_of(cells["Counter"]) for cells in rows("Counter")} == found


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

    check_judges(settings, example["model_list"])
    zoo = settings.zoos["llama"]
    assert [zoo.level(name).label_rate for name in ("default", "gold")] == [0.05, 0.2]


def test_the_sql_of_what_grading_costs_runs(database: sqlite3.Connection) -> None:
    (query,) = (
        block.code for block in PAGE.blocks if block.language == "sql" and SECTION in block.headings
    )
    found: list[Any] = database.execute(query).fetchall()

    assert found  # the seeded history has gradings
