"""The table of docs/support.md: what has run together, from `tools/matrix.json`.

Rows and columns are those of the matrix in `.github/workflows/ci.yml`; the releases of LiteLLM are
those that the start of the plugin and `constraints.txt` name. What has not run is shown so.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from litellm_messplus.serving.litellm_fit import NEWEST, OLDEST
from tools.matrix import MATRIX, Ran, read

ROOT = Path(__file__).parents[1]
BEGIN = "| Python | "
NOTHING = "not run"


def printed(page: str) -> str:
    """Return the page with an up-to-date table. Raises ValueError if it lacks one."""
    found = re.search(rf"^{re.escape(BEGIN)}.*\n(?:\|.*\n)*", page, re.MULTILINE)
    if found is None:
        raise ValueError(f"no table that begins with {BEGIN}")
    return page[: found.start()] + table(read(MATRIX)) + page[found.end() :]


def table(runs: Sequence[Ran]) -> str:
    """Return the table: a row for each Python, a column for each release of LiteLLM."""
    matrix, named = read_matrix(), releases()
    versions = [named.get(each, each) for each in matrix["litellm"]]
    columns = [
        f"LiteLLM {version}" if version == each else f"LiteLLM {version}, {each}"
        for version, each in zip(versions, matrix["litellm"], strict=True)
    ]
    lines = [f"{BEGIN}{' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    for python in matrix["python"]:
        cells = [cell(runs, python, version) for version in versions]
        lines.append(f"| {python} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(runs: Sequence[Ran], python: str, litellm: str) -> str:
    """Return the databases on which the two have run, with what was run there."""
    found: dict[str, list[str]] = {}
    for each in runs:
        if (each.python, each.litellm) == (python, litellm):
            found.setdefault(each.database, []).append(each.ran)
    shown = [f"{database}: {', '.join(ran)}" for database, ran in sorted(found.items())[::-1]]
    return "; ".join(shown) or NOTHING


def read_matrix() -> dict[str, list[str]]:
    """Return what the hosted checks combine: versions of Python, of LiteLLM, and databases."""
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    jobs: dict[str, Any] = yaml.safe_load(workflow)["jobs"]
    found: dict[str, list[str]] = jobs["test"]["strategy"]["matrix"]
    return found


def releases() -> dict[str, str]:
    """Return the releases of LiteLLM that have names in the matrix."""
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    pinned = re.findall(r"^litellm==(\S+)$", constraints, re.MULTILINE)
    return {"lowest": OLDEST, "pinned": pinned[0], "newest": NEWEST}
