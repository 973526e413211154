"""What is installed beside the wheel may be used by a service as it is."""

import re
import tomllib

import pytest

from tests.support.markdown import ROOT, Document
from tools.licences import USED_AS_IT_IS, installed, is_free, licence_of, vendored


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "BSD 3-Clause License",
        "Apache-2.0 OR GPL-2.0-only",
        "MPL-2.0 AND (Apache-2.0 OR MIT)",
        "Apache Software License, MIT License",
        "Python Software Foundation License",
    ],
)
def test_a_licence_that_asks_nothing_of_users_is_known(licence: str) -> None:
    assert is_free(licence)


@pytest.mark.parametrize(
    "licence", ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "LicenseRef-Proprietary", "LIMITED"]
)
def test_any_other_is_read_by_somebody_first(licence: str) -> None:
    assert not is_free(licence)


def test_the_expression_counts_before_classifiers_and_these_before_the_text() -> None:
    classifiers = ["License :: OSI Approved", "License :: OSI Approved :: MIT License"]
    text = {"License": "Copyright (c)\nmany lines"}

    assert licence_of({"License-Expression": "ISC", **text}, classifiers) == "ISC"
    assert licence_of(text, classifiers) == "MIT License"
    assert licence_of(text, []) == "Copyright (c)"
    assert licence_of({}, []) == ""


def test_what_is_installed_here_is_listed_with_its_version() -> None:
    found = installed()

    assert {"litellm", "numpy", "sqlalchemy"} <= found.keys()
    assert "litellm-messplus" not in found
    assert all(version for version, _ in found.values())


def test_what_the_wheel_holds_of_others_is_listed_and_its_licence_goes_along() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert vendored() == {"uPlot": ("1.6.32", "MIT")}
    assert project["license"] == "Apache-2.0 AND MIT"
    assert all((ROOT / path).is_file() for path in project["license-files"])


def test_the_page_names_what_is_used_under_another_licence() -> None:
    rows = Document(ROOT / "docs" / "support.md").under("Licences")
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row.cells["Package"])]

    assert sorted(named) == sorted(USED_AS_IT_IS)


def test_nothing_of_ours_imports_what_is_used_under_another_licence() -> None:
    names = "|".join({name.replace("-", "_") for name in USED_AS_IT_IS})
    sources = (ROOT / "litellm_messplus").rglob("*.py")
    importing = re.compile(rf"^\s*(?:import|from) (?:{names})\b", re.MULTILINE)

    assert [path.name for path in sources if importing.search(path.read_text("utf-8"))] == []
