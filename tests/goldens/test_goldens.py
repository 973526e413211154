"""What the product says and writes, byte for byte as it was recorded.

A golden changes only in a commit of its own that says why: `python -m tests.goldens --write`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens.compared import DATA, differences, read

ROOT = Path(__file__).parents[2]
KNOWN = read(DATA)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Record everything anew, in a process of its own, whose hashes are random."""
    folder = tmp_path_factory.mktemp("goldens")
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-m", "tests.goldens", "--to", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    return read(folder)


@pytest.mark.parametrize("name", KNOWN)
def test_is_as_recorded(recorded: dict[str, str], name: str) -> None:
    assert name in recorded, "it cannot be recorded; the captured stderr says why"
    wrong = differences({name: KNOWN[name]}, {name: recorded[name]})

    assert not wrong, wrong[0]


def test_all_that_is_recorded_is_a_golden(recorded: dict[str, str]) -> None:
    assert recorded.keys() == KNOWN.keys()


def test_one_altered_figure_is_caught_and_shown() -> None:
    name = "routes/status.json"
    altered = KNOWN[name].replace('"requests": ', '"requests": 1', 1)

    [shown] = differences(KNOWN, {**KNOWN, name: altered})

    assert shown.startswith(f"--- golden {name}\n+++ now {name}\n")
    assert "+" + next(line for line in altered.splitlines() if '"requests": 1' in line) in shown
    assert len(shown.splitlines()) <= 40


def test_they_are_small() -> None:
    assert sum(len(text.encode()) for text in KNOWN.values()) < 1_600_000
