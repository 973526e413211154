"""What others may import: a name that goes, or moves, breaks their code."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import litellm_messplus
from litellm_messplus import Check, Encoder, Meter

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PUBLIC = [
    "Answer",
    "AnsweredCall",
    "Check",
    "ConfigurationError",
    "Conversation",
    "Encoder",
    "Experiment",
    "FeatureRows",
    "Features",
    "HashedNgrams",
    "MessplusError",
    "Meter",
    "Plan",
    "Reading",
    "Score",
    "Turn",
    "Window",
    "check_encoder",
    "read_file",
    "reading",
    "shortened",
]
LOADED_BY_LITELLM = "litellm_messplus.plugin"


def test_the_public_names_are_these() -> None:
    assert litellm_messplus.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_is_found_and_is_what_its_module_has(name: str) -> None:
    found = getattr(litellm_messplus, name)

    assert name in dir(litellm_messplus)
    home = litellm_messplus._HOME_OF[name]
    assert found is getattr(import_module(home), name)


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse((ROOT / "litellm_messplus" / "__init__.py").read_text())
    (typing,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in typing.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert seen == litellm_messplus._HOME_OF


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = litellm_messplus.no_such_name


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, litellm_messplus;"
        "print(sorted({'torch', 'litellm', 'numpy', 'sqlalchemy'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert ended.stdout.strip() == "[]"


def test_the_protocols_are_protocols() -> None:
    for protocol in (Check, Encoder, Meter):
        assert getattr(protocol, "_is_protocol", False), protocol


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_from_the_package_alone(page: Path) -> None:
    imported = re.findall(r"(?:from|import) (litellm_messplus[\w.]*)", page.read_text())

    assert [name for name in imported if name not in ("litellm_messplus", LOADED_BY_LITELLM)] == []
