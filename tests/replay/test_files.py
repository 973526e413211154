"""Recordings in files: the same whatever the format; errors that say where and what."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import ReplayError
from tests.support.recordings import ENCODER, rows, write_csv


@pytest.mark.parametrize("name", ["zoo.csv", "zoo.csv.gz", "zoo.parquet"])
def test_every_format_holds_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pl.DataFrame(rows()).write_parquet(path)
    else:
        write_csv(path, rows())

    found = read_file(path, ENCODER)

    assert found.name == str(path)
    assert found.models == ("cheap", "dear")
    assert found.unit == "J"
    assert found.satisfied.tolist() == [[0, 1], [1, 1], [0, 1], [1, 1], [0, 1]]
    assert found.cost[:, 0].tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert found.largest == "dear"


def test_prompts_are_encoded_once_each_and_kept_to_the_letter(tmp_path: Path) -> None:
    found = read_file(write_csv(tmp_path / "zoo.csv", rows()), ENCODER)

    assert found.prompts.texts[0] == "again, and again"
    assert found.prompts.texts[1] == 'say "2",\nplease'
    assert found.prompt.tolist() == [0, 0, 1, 2, 3]
    assert np.array_equal(found.prompts.features[1], ENCODER.encode(['say "2",\nplease'])[0])


def test_dollars_are_read_too(tmp_path: Path) -> None:
    content = [
        {key.replace("energy_j", "cost_usd"): value for key, value in row.items()} for row in rows()
    ]

    assert read_file(write_csv(tmp_path / "zoo.csv", content), ENCODER).unit == "USD"


@pytest.mark.parametrize(
    ("column", "given", "allowed"),
    [
        ("cheap|satisfied", "2", "0 or 1"),
        ("cheap|satisfied", "yes", "0 or 1"),
        ("dear|satisfied", "", "0 or 1"),
        ("dear|energy_j", "-1", "a number of at least 0"),
        ("dear|energy_j", "nan", "a number of at least 0"),
        ("cheap|energy_j", "inf", "a number of at least 0"),
        ("cheap|energy_j", "many", "a number of at least 0"),
    ],
)
def test_a_wrong_value_has_its_place(tmp_path: Path, column: str, given: str, allowed: str) -> None:
    content = rows()
    content[2][column] = given
    path = write_csv(tmp_path / "zoo.csv", content)

    with pytest.raises(ReplayError) as caught:
        read_file(path, ENCODER)

    message = str(caught.value)
    for part in (str(path), f"'{column}'", "request 3", given, f"allowed: {allowed}"):
        assert part in message


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("prompt", "column 'prompt'"),
        ("dear|satisfied", "at least 2 models"),
        ("dear|energy_j", "'dear|energy_j' or 'dear|cost_usd'"),
    ],
)
def test_a_missing_column_is_named(tmp_path: Path, missing: str, told: str) -> None:
    content = [{key: value for key, value in row.items() if key != missing} for row in rows()]

    with pytest.raises(ReplayError, match="given") as caught:
        read_file(write_csv(tmp_path / "zoo.csv", content), ENCODER)
    assert told in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.parquet", "nowhere.db", "zoo.xlsx"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReplayError, match=name):
        read_file(tmp_path / name, ENCODER)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("zoo.csv", ",".join(rows()[0]) + "\n", "at least 1 row"),
        ("zoo.csv", "prompt,a|satisfied,b|satisfied\nhello,1\n", "request 1 has 2 values in 3 c"),
        ("zoo.csv", "prompt,prompt\nhello,1\n", "two columns of one name"),
        ("zoo.csv", 'prompt,a\n"hello,1\n', "unexpected end of data"),
        ("zoo.parquet", "not a table", "cannot be read"),
    ],
)
def test_a_file_without_one_is_refused(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(ReplayError, match=told):
        read_file(tmp_path / name, ENCODER)


def test_a_long_prompt_is_read_whole(tmp_path: Path) -> None:
    content = rows()
    content[0]["prompt"] = "x" * 200_000

    found = read_file(write_csv(tmp_path / "zoo.csv", content), ENCODER)

    assert max(map(len, found.prompts.texts)) == 200_000


# Rows that are turns: a conversation is one request, held on the model that began.

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


def write_turns(folder: Path, rows: list[dict[str, Any]] = ROWS, columns: Any = COLUMNS) -> Path:
    path = folder / "conversations.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def changed(place: int, **values: Any) -> list[dict[str, Any]]:
    return [{**row, **values} if i == place else row for i, row in enumerate(ROWS)]


def test_a_conversation_sums_its_turns_and_ends_with_its_verdict(tmp_path: Path) -> None:
    found = read_file(write_turns(tmp_path), ENCODER)

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
    given = [str(write_turns(tmp_path, rows)), "--alpha", "0.7", "--seeds", "1"]
    found = CliRunner().invoke(app, ["replay", *given, "--json", "--no-baselines"])

    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert any("120 conversations of 2.0 turns" in note for note in report["notes"])
    assert any("no switch is replayed" in note for note in report["notes"])


def test_without_numbers_turns_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    columns = [name for name in COLUMNS if name != "turn"]
    rows = [ROWS[1], ROWS[0], *ROWS[2:]]
    found = read_file(write_turns(tmp_path, rows, columns), ENCODER)

    assert [found.prompts.texts[place] for place in found.prompt] == ["b1", "a1"]
    assert found.cost.tolist() == [[7.0, 30.0], [3.0, 30.0]]


@pytest.mark.parametrize(
    ("rows", "message"),
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
def test_what_cannot_be_is_told(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ReplayError) as caught:
        read_file(write_turns(tmp_path, rows), ENCODER)
    assert message in str(caught.value)


def test_without_prompts_there_is_nothing_to_decide_by(tmp_path: Path) -> None:
    columns = [name for name in COLUMNS if name != "prompt"]
    with pytest.raises(ReplayError, match="column 'prompt': given none"):
        read_file(write_turns(tmp_path, columns=columns), ENCODER)
