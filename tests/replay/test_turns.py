"""Recordings whose rows are turns: a conversation is one request, held on the model that began."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import ReplayError
from tests.support.recordings import ENCODER

COLUMNS = (
    *("conversation", "turn", "tool_loop", "gap_s", "prompt"),
    *("small|satisfied", "small|cost_usd", "small|prompt_tokens"),
    *("large|satisfied", "large|cost_usd"),
)


def turn(conversation: str, number: int, small: Any, large: Any, **more: Any) -> dict[str, Any]:
    return {
        "conversation": conversation,
        "turn": number,
        "prompt": f"{conversation}{number}",
        "small|cost_usd": small,
        "large|cost_usd": large,
        **more,
    }


ROWS = [
    turn("b", 2, 2, 20, **{"large|satisfied": 1}),  # where the large one had ended
    turn("b", 1, 1, 10),
    turn("a", 1, 3, 30, **{"small|satisfied": 0, "large|satisfied": 1}),
    turn("b", 3, 4, None, **{"small|satisfied": 1}),
]


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, columns: Any = COLUMNS) -> Path:
    path = folder / "conversations.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def changed(place: int, **values: Any) -> list[dict[str, Any]]:
    return [{**row, **values} if i == place else row for i, row in enumerate(ROWS)]


def test_a_conversation_costs_the_sum_of_its_turns_and_ends_with_its_verdict(
    tmp_path: Path,
) -> None:
    found = read_file(write(tmp_path), ENCODER)

    assert [found.prompts.texts[place] for place in found.prompt] == ["b1", "a1"]
    assert found.models == ("small", "large")
    assert found.cost.tolist() == [[7.0, 30.0], [3.0, 30.0]]
    assert found.satisfied.tolist() == [[1.0, 1.0], [0.0, 1.0]]


def test_the_report_says_that_no_switch_is_replayed(tmp_path: Path) -> None:
    rows = [
        {**row, "conversation": f"{row['conversation']}{number}"}
        for number in range(60)
        for row in ROWS
    ]
    given = [str(write(tmp_path, rows)), "--alpha", "0.7", "--seeds", "1"]
    found = CliRunner().invoke(app, ["replay", *given, "--json", "--no-baselines"])

    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert any("120 conversations of 2.0 turns" in note for note in said["notes"])
    assert any("no switch is replayed" in note for note in said["notes"])


def test_without_numbers_turns_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    columns = [name for name in COLUMNS if name != "turn"]
    rows = [ROWS[1], ROWS[0], *ROWS[2:]]
    found = read_file(write(tmp_path, rows, columns), ENCODER)

    assert [found.prompts.texts[place] for place in found.prompt] == ["b1", "a1"]
    assert found.cost.tolist() == [[7.0, 30.0], [3.0, 30.0]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (changed(0, turn="two"), "column 'turn', row 1: given 'two'; allowed: a number"),
        (changed(0, **{"small|cost_usd": None}), "conversation 'b': given '4' after an empty turn"),
        (changed(3, **{"small|satisfied": None}), "'small|satisfied', request 1: given ''"),
        (changed(0, **{"large|satisfied": 7}), "'large|satisfied', request 1: given '7'"),
        (changed(2, **{"large|cost_usd": None}), "'large|satisfied', request 2: given None"),
        (changed(1, **{"small|cost_usd": "much"}), "conversation 'b': given 'much'; allowed: a n"),
        (changed(1, **{"small|cost_usd": -1}), "conversation 'b': given '-1'; allowed: a number"),
    ],
    ids=["turn", "hole", "no verdict", "verdict", "no turn", "no number", "below zero"],
)
def test_what_cannot_be_is_refused(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ReplayError) as caught:
        read_file(write(tmp_path, rows), ENCODER)
    assert said in str(caught.value)


def test_without_prompts_there_is_nothing_to_decide_by(tmp_path: Path) -> None:
    columns = [name for name in COLUMNS if name != "prompt"]
    with pytest.raises(ReplayError, match="column 'prompt': given none"):
        read_file(write(tmp_path, columns=columns), ENCODER)
