"""The table of what runs together shows what has run, and nothing else."""

import json
import sys
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks.support_table import NOTHING, read_matrix, releases, table
from tools import matrix
from tools.matrix import Ran, joined, note, read, write

NEWEST = releases()["newest"]
RAN = Ran("3.12", NEWEST, "SQLite", "all tests", "2026-11-01")


def cells(runs: list[Ran]) -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in table(runs).splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


def test_a_pair_that_has_not_run_is_shown_so() -> None:
    found = cells([])

    assert list(found) == read_matrix()["python"]
    assert {each for row in found.values() for each in row} == {NOTHING}


def test_a_run_is_shown_in_its_cell_alone_with_what_was_run() -> None:
    wheel = replace(RAN, database="Postgres 16", ran="wheel")
    found = cells([RAN, wheel, replace(RAN, litellm="0.1")])

    assert found["3.12"] == [*3 * [NOTHING], "SQLite: all tests; Postgres 16: wheel"]
    assert found["3.13"] == 4 * [NOTHING]


def test_the_newest_of_runs_of_the_same_is_kept(tmp_path: Path) -> None:
    newer, other = replace(RAN, on="2026-11-02"), replace(RAN, python="3.11")
    write(joined([newer, RAN, other]), tmp_path / "matrix.json")

    assert read(tmp_path / "matrix.json") == [other, newer]


def test_an_environment_notes_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    noted = note("wheel", None)

    assert [asdict(ran) for ran in read(noted)] == [json.loads(noted.read_text())]
    (found,) = read(noted)
    assert found.what == (
        f"{sys.version_info.major}.{sys.version_info.minor}",
        metadata.version("litellm"),
        "SQLite",
        "wheel",
    )
