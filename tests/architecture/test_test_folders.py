"""Tests lie in the folder of the room that they test, and share what they build in `support`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "litellm_messplus"
OTHERS = {
    "spine": "the modules above all rooms",
    "architecture": "how code, pages and commands are laid out",
    "benchmarks": "what makes the figures of the docs",
    "deploy": "files that operators install",
    "release": "what makes a release",
    "docs": "pages, held to the code",
    "examples": "what a checkout serves and asks",
    "end_to_end": "a real proxy process",
    "goldens": "what all surfaces say and write, byte for byte",
    "faults": "a real proxy while something breaks",
    "postgres": "a real Postgres",
    "vllm": "real vLLM servers",
    "support": "what tests of several folders build with",
}
"""The folders that are no room of the package, and what is in them."""


def modules() -> list[Path]:
    return [path for path in TESTS.rglob("*.py") if path.name not in ("__init__.py", "conftest.py")]


def folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


def imported(path: Path) -> Iterator[str]:
    """The folders of the tests that a module imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            yield str(node.module).split(".")[1]


def test_every_folder_is_a_room_or_one_of_the_others() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}

    assert {folder(path) for path in modules()} - rooms - OTHERS.keys() == set()


def test_no_folder_imports_from_another_but_support() -> None:
    found = {
        str(path.relative_to(TESTS)): foreign
        for path in modules()
        if (foreign := set(imported(path)) - {folder(path), "support"})
    }

    assert found == {}


def test_tests_of_a_real_proxy_are_marked_so_that_a_change_does_not_wait_for_them() -> None:
    unmarked = [
        str(path.relative_to(TESTS))
        for name in ("end_to_end", "faults")
        for path in (TESTS / name).glob("test_*.py")
        if not re.search(
            rf"^pytestmark = \[?pytest\.mark\.{name}\b", path.read_text(), re.MULTILINE
        )
    ]

    assert unmarked == []
