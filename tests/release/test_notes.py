"""A release has one version, its tag names it, and the changelog says what is in it."""

import pytest

from tests.support.markdown import ROOT
from tools import notes
from tools.notes import UNRELEASED, declared_version, notes_of, read_release

CHANGELOG = """# Changelog

## Unreleased

## 0.2.0 (2026-12-01)

### Added
- A part.

## 0.1.0 (2026-06-01)

- The first.
"""


def test_the_notes_are_the_part_of_the_version_without_its_heading() -> None:
    assert notes_of(CHANGELOG, "0.2.0") == "### Added\n- A part."
    assert notes_of(CHANGELOG, "0.1.0") == "- The first."


@pytest.mark.parametrize("heading", [UNRELEASED, "0.3.0", "0.2"])
def test_a_version_without_notes_is_not_released(heading: str) -> None:
    with pytest.raises(SystemExit, match=rf"says nothing under `## {heading}`"):
        notes_of(CHANGELOG, heading)


def test_a_tag_of_another_version_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"the tag is v9\.9\.9, and pyproject\.toml says"):
        read_release("v9.9.9")


def test_what_has_no_tag_is_tried_with_the_unreleased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "tag_of_checkout", lambda: None)
    found = read_release(None)

    assert found.version == declared_version((ROOT / "pyproject.toml").read_text("utf-8"))
    assert found.tag is None
    assert found.notes


def test_a_commit_with_two_tags_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "git", lambda *arguments: "v0.1.0\nv0.2.0")
    with pytest.raises(SystemExit, match="several tags"):
        notes.tag_of_checkout()
