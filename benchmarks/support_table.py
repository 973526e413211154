"""The table of docs/support.md: what the hosted checks run together, from the files that say so.

Python and databases are those of `.github/workflows/ci.yml`, the releases of LiteLLM those that the
start of the plugin and `constraints.txt` name.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from litellm_messplus.serving.litellm_fit import NEWEST, OLDEST

ROOT = Path(__file__).parents[1]
BEGIN = "| Python | "
DATABASES = {"sqlite": "SQLite", "postgres": "Postgres"}


def printed(page: str) -> str:
    """Return the page with an up-to-date table. Raises ValueError if it lacks one."""
    found = re.search(rf"^{re.escape(BEGIN)}.*\n(?:\|.*\n)*", page, re.MULTILINE)
    if found is None:
        raise ValueError(f"no table that begins with {BEGIN}")
    return page[: found.start()] + table() + page[found.end() :]


def table() -> str:
    """Return the table: a row for each Python, a column for each release of LiteLLM."""
    matrix, versions = read_matrix(), releases()
    columns = [f"LiteLLM {versions[each]}, {each}" for each in matrix["litellm"]]
    cell = " and ".join(databases())
    lines = [f"{BEGIN}{' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    lines += [f"| {python} | {' | '.join([cell] * len(columns))} |" for python in matrix["python"]]
    return "\n".join(lines) + "\n"


def read_matrix() -> dict[str, list[str]]:
    """Return what the hosted checks combine: versions of Python, of LiteLLM, and databases."""
    found: dict[str, list[str]] = _job()["strategy"]["matrix"]
    return found


def releases() -> dict[str, str]:
    """Return the releases of LiteLLM by their names in the matrix."""
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    pinned = re.findall(r"^litellm==(\S+)$", constraints, re.MULTILINE)
    return {"lowest": OLDEST, "pinned": pinned[0], "newest": NEWEST}


def databases() -> list[str]:
    """Return the databases of the matrix, with the version where the checks name one."""
    images = [service["image"] for service in _job()["services"].values()]
    named = {image.partition(":")[0]: image.partition(":")[2] for image in images}
    return [
        f"{DATABASES[each]} {named.get(each, '')}".strip() for each in read_matrix()["database"]
    ]


def _job() -> dict[str, Any]:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(workflow)["jobs"]["test"]
    return found
