"""Who may import whom: the rooms of docs/design.md, checked on the code's own imports."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "litellm_messplus"
PURE = ("core", "costs", "switching")
IMPURE_IMPORTS = {"litellm", "sqlalchemy", "time", "datetime", "asyncio", "os", "random", "httpx"}
PURE_TOOLS = {"bounded", "draws", "errors", "stand_ins", "vocabulary"}
"""Modules of `runtime` that have no clock either."""
ALLOWED = {
    "runtime": set(),
    "brain": {
        "backlog",
        "core",
        "costs",
        "encoders",
        "figures",
        "inspecting",
        "journal",
        "labels",
        "learning",
        "page",
        "records",
        "restore",
        "rows",
        "runtime",
        "settings",
        "status",
        "store",
        "switching",
        "upkeep",
    },
    "core": {"costs", "rows", "runtime", "settings"},
    "costs": set(),
    "encoders": {"core", "energy", "runtime"},
    "settings": {"costs", "runtime", "switching"},
    "switching": {"certificate", "rows", "runtime"},
    "learning": {
        "backlog",
        "core",
        "figures",
        "records",
        "restore",
        "rows",
        "runtime",
        "settings",
        "store",
    },
    "store": {
        "core",
        "figures",
        "labels",
        "learning",
        "records",
        "rows",
        "runtime",
        "switching",
    },
    "labels": {"core", "costs", "records", "runtime", "settings"},
    "status": {
        "core",
        "figures",
        "labels",
        "runtime",
        "store",
        "switching",
    },
    "figures": {"runtime"},
    "certificate": {"figures", "runtime", "status", "store"},
    "replay": {
        "certificate",
        "core",
        "costs",
        "encoders",
        "figures",
        "records",
        "runtime",
        "settings",
        "store",
        "switching",
    },
    "energy": {"runtime"},
    "upkeep": {
        "core",
        "costs",
        "encoders",
        "learning",
        "records",
        "replay",
        "restore",
        "rows",
        "runtime",
        "settings",
        "status",
        "store",
    },
    "inspecting": {"core", "figures", "records", "rows", "runtime", "store", "switching"},
    "page": {"certificate", "figures", "inspecting", "runtime", "status", "store"},
    "cli": {
        "brain",
        "certificate",
        "encoders",
        "energy",
        "figures",
        "inspecting",
        "replay",
        "runtime",
        "serving",
        "settings",
        "status",
        "switching",
        "upkeep",
    },
}
"""Rooms that each room may import beside itself; `serving`, above all of them, may import any."""


UPWARD = {
    ("records", "switching"),
    ("settings", "switching"),
    ("status", "switching"),
    ("store", "labels"),
    ("store", "learning"),
    ("store", "switching"),
}
"""Imports that still close circles between rooms: none may be added; one that is gone leaves."""


SPINE = {
    "backlog": {"records", "runtime", "store"},
    "conformance": {"core"},
    "journal": {"backlog", "learning", "records", "rows", "runtime", "store"},
    "plugin": {"serving"},
    "records": {"core", "rows", "runtime", "switching"},
    "restore": {"core", "runtime", "store"},
    "rows": {"runtime"},
}
"""The same for each module that stands in no room."""


def imports(room: str) -> Iterator[tuple[Path, str]]:
    """Of a room's modules, or of a module in no room."""
    within = sorted((PACKAGE / room).rglob("*.py"))
    for path in within if (PACKAGE / room).is_dir() else [PACKAGE / f"{room}.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module == "litellm_messplus":
                yield from ((path, f"litellm_messplus.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module


@pytest.mark.parametrize("room", PURE)
def test_what_decides_knows_no_framework_and_no_clock(room: str) -> None:
    for path, name in imports(room):
        parts = name.split(".")
        assert parts[0] not in IMPURE_IMPORTS, f"{path} imports {name}"
        if parts[:2] == ["litellm_messplus", "runtime"]:
            assert parts[2] in PURE_TOOLS, f"{path} imports {name}"


@pytest.mark.parametrize("room", sorted(ALLOWED | SPINE))
def test_imports_run_one_way(room: str) -> None:
    for path, name in imports(room):
        parts = name.split(".")
        if parts[0] == "litellm_messplus" and len(parts) > 1:
            assert parts[1] in (ALLOWED | SPINE)[room] | {room}, f"{path} imports {name}"


def rooms_imported(room: str) -> set[str]:
    names = (name.split(".") for _, name in imports(room))
    return {parts[1] for parts in names if parts[0] == "litellm_messplus" and len(parts) > 1} - {
        room
    }


def test_rooms_import_in_no_circle() -> None:
    whole = {room: rooms_imported(room) for room in (*ALLOWED, *SPINE, "serving")}
    downward = {
        room: {other for other in others if (room, other) not in UPWARD}
        for room, others in whole.items()
    }

    TopologicalSorter(downward).prepare()  # raises CycleError, which names the rooms
    assert {(room, other) for room, others in whole.items() for other in others} >= UPWARD


def test_only_the_proxy_knows_litellm() -> None:
    rooms = [path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "serving"]
    found = [
        (path.name, name)
        for room in rooms
        for path, name in imports(room)
        if name.split(".")[0] == "litellm"
    ]

    assert found == []


def test_a_worker_loads_no_database_and_no_policy() -> None:
    look = "import sys, litellm_messplus.serving.startup; print(*sys.modules, sep='\\n')"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "litellm_messplus.brain.wire" in loaded
    assert not loaded & {"sqlalchemy", "torch", "litellm_messplus.core.policy"}


def test_every_room_and_every_module_beside_them_says_whom_it_may_import() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}

    assert rooms == set(ALLOWED) | {"serving"}
    assert modules == set(SPINE)


def test_every_room_is_in_the_picture() -> None:
    picture = (PACKAGE.parent / "docs" / "design.md").read_text()
    rooms = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]

    assert [room for room in rooms if f"{room}/" not in picture] == []


def described(room: str) -> str:
    return ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""


ORDERS = {room: re.findall(r"^(\w+)/?  ", described(room), re.M) for room in ("serving", "brain")}


@pytest.mark.parametrize("room", ORDERS)
def test_a_room_on_the_road_names_every_module(room: str) -> None:
    within, order = PACKAGE / room, ORDERS[room]
    modules = {path.stem for path in within.glob("*.py")} - {"__init__"}
    rooms = {path.name for path in within.iterdir() if (path / "__init__.py").exists()}

    assert len(order) == len(set(order))
    assert set(order) == modules | rooms


def test_what_the_design_says_to_change_is_there() -> None:
    design = (PACKAGE.parent / "docs" / "design.md").read_text()
    table = design.partition("## To change something")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+(?:/|\.py))`", table)
    rooms = [PACKAGE / name for name in named if not name.startswith("docs/")]

    assert len(rooms) > 15
    assert [path for path in rooms if not path.exists()] == []
