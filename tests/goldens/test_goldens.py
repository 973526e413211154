"""What the product says and writes, byte for byte as it was recorded.

A golden changes only in a commit of its own that says why: `python -m tests.goldens --write`.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.goldens.compared import DATA, differences, read

ROOT = Path(__file__).parents[2]
KNOWN = read(DATA)


def test_all_that_is_said_and_written_is_as_recorded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.goldens", "--to", str(tmp_path)]
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    wrong = differences(KNOWN, read(tmp_path))

    assert not wrong, "\n".join(wrong)
    assert done.returncode == 0, done.stderr


def test_one_altered_figure_is_caught_and_shown() -> None:
    name = "routes/status.json"
    altered = KNOWN[name].replace('"requests": ', '"requests": 1', 1)

    [shown] = differences(KNOWN, {**KNOWN, name: altered})

    assert shown.startswith(f"--- golden {name}\n+++ now {name}\n")
    assert "+" + next(line for line in altered.splitlines() if '"requests": 1' in line) in shown
    assert len(shown.splitlines()) <= 40


def test_they_are_small() -> None:
    assert sum(len(text.encode()) for text in KNOWN.values()) < 1_000_000
