"""The figures of `benchmarks.house`, on a small package whose figures are known."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks.house import BUDGET, above, circles, figures, read_package, report, rooms

LONG = "x = 1\n" * 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "__init__.py": '"""Made."""\n\nfrom made.store.log import write\n\n__all__ = ["write"]\n',
        "engine.py": "from made.store import log\n\n\ndef decide() -> None:\n    log.write()\n",
        "store/__init__.py": "",
        "store/log.py": f"from .tables import NAMES\n\n\ndef write() -> None: ...\n{LONG}",
        "store/tables.py": "from made.store import log\n\nNAMES = 1\n",
        "store/later.py": (
            "from typing import TYPE_CHECKING\n\n"
            "if TYPE_CHECKING:\n    import made.store.late\n\n\n"
            "class Later:\n    def now(self) -> None: ...\n    async def then(self) -> None: ...\n"
        ),
        "store/late.py": "import made.store.later\n",
    }
    for name, text in files.items():
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "made"


def test_modules_are_counted_and_re_exports_apart(folder: Path) -> None:
    found = figures(read_package(folder))

    # Without a statement of their own: both `__init__` and `late`.
    assert (found.modules, found.re_exports) == (7, 3)
    assert found.lines == 5 + 5 + 0 + 84 + 3 + 9 + 1
    assert found.median_lines == (5 + 9) / 2
    assert (found.short, found.short_share) == (3, 0.75)
    assert (found.largest, found.largest_lines) == ("made.store.log", 84)
    assert found.functions == 1


def test_rooms_are_the_folders_below_the_package(folder: Path) -> None:
    found = rooms(read_package(folder))

    assert {room: [module.name for module in modules] for room, modules in found.items()} == {
        ".": ["made", "made.engine"],
        "store": [
            *("made.store", "made.store.late", "made.store.later", "made.store.log"),
            "made.store.tables",
        ],
    }


def test_a_circle_is_found_whether_an_import_is_relative_or_not(folder: Path) -> None:
    assert circles(read_package(folder)) == [("made.store.log", "made.store.tables")]


def test_an_import_for_types_alone_makes_no_circle(folder: Path) -> None:
    imports = {module.name: module.imports for module in read_package(folder)}

    assert imports["made.store.late"] == {"made.store.later"}
    assert imports["made.store.later"] == frozenset()


def test_the_report_has_a_line_for_each_room_and_names_the_circle(folder: Path) -> None:
    lines = report(folder).splitlines()

    assert "  made.store.log <-> made.store.tables" in lines
    assert lines[-2].split() == [".", "2", "10", "5", "1", "engine,", "5"]
    assert lines[-1].split() == ["store", "5", "97", "9", "2", "log,", "84"]


def test_what_is_above_its_bound_is_named() -> None:
    found = {"lines": 120, "views": 13}

    assert above(found, {"lines": 120, "views": 13}) == []
    assert above(found, {"lines": 100, "views": 13}) == ["lines: 120, and at most 100 are allowed"]


def test_this_house_is_within_its_budget() -> None:
    """In a process of its own, as the command is: what it walks must not be loaded for tests."""
    checked = subprocess.run(
        [sys.executable, "-m", "benchmarks.house", "--check"], capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stderr
    assert set(json.loads(checked.stdout)) == set(tomllib.loads(BUDGET.read_text("utf-8")))
