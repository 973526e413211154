"""What is released: the version, the tag that names it, and its part of the changelog."""

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "Unreleased"


@dataclass(frozen=True)
class Release:
    """One version with its notes; ``tag`` is None for a trial of what has no tag yet."""

    version: str
    tag: str | None
    notes: str


def read_release(tag: str | None) -> Release:
    """Return what the checkout would release. Raises SystemExit where its parts disagree."""
    version = declared_version((ROOT / "pyproject.toml").read_text("utf-8"))
    tag = tag or tag_of_checkout()
    if tag is not None and tag != f"v{version}":
        raise SystemExit(f"release: the tag is {tag}, and pyproject.toml says {version}")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    return Release(version, tag, notes_of(changelog, UNRELEASED if tag is None else version))


def declared_version(project: str) -> str:
    """Return the version in the text of a `pyproject.toml`."""
    return str(tomllib.loads(project)["project"]["version"])


def tag_of_checkout() -> str | None:
    """Return the tag of a version that the commit has, if any."""
    tags = git("tag", "--points-at", "HEAD", "v*").split()
    if len(tags) > 1:
        raise SystemExit(f"release: the commit has several tags: {', '.join(tags)}")
    return tags[0] if tags else None


def notes_of(changelog: str, heading: str) -> str:
    """Return the part of the changelog under a version, whose heading may go on with a date.
    Raises SystemExit where there is none, or nothing in it."""
    parts = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    named = {part.split(maxsplit=1)[0]: part for part in parts}
    _, _, notes = named.get(heading, "").partition("\n")
    if not notes.strip():
        raise SystemExit(f"release: CHANGELOG.md says nothing under `## {heading}`")
    return notes.strip()


def git(*arguments: str) -> str:
    """Return what a command of git prints, about this checkout."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
