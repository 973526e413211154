"""The licences of all that an environment has installed, as their metadata state them.

    python tools/licences.py           # a table in Markdown, of the environment of this Python
    python tools/licences.py --check   # fails where one is unknown, or asks too much of users

Imports nothing but the standard library, so that it runs in the environment of a wheel.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

OURS = "litellm-messplus"
OF_THE_ENVIRONMENT = {"pip", "setuptools", "wheel"}
FREE = frozenset(
    re.findall(
        r"\w+",
        """
    MIT BSD 0BSD Apache ISC PSF Python MPL Mozilla Unlicense CC0 Zlib ZPL Zope HPND PostgreSQL CNRI
        """,
    )
)
"""Words of the names of licences under which a service may use a package unchanged."""
USED_AS_IT_IS = {
    "litellm-enterprise": "of LiteLLM's proxy, which installs it; nothing here imports it",
    "psycopg": "LGPL, of LiteLLM's proxy; nothing here imports it",
    "psycopg-binary": "LGPL, of LiteLLM's proxy; nothing here imports it",
}
"""Packages under other licences that are installed all the same, and why nobody owes for it."""
CLASSIFIER = "License :: "


def licence_of(found: Mapping[str, str], classifiers: Iterable[str]) -> str:
    """Return the licence in a package's metadata: the expression, else the classifiers, else the
    first line of the text; empty where there is none."""
    if expression := found.get("License-Expression"):
        return str(expression)
    named = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith(CLASSIFIER)]
    if named := [each for each in named if each != "OSI Approved"]:
        return ", ".join(sorted(set(named)))
    lines = (found.get("License") or "").strip().splitlines()
    return lines[0].strip() if lines else ""


def is_free(licence: str) -> bool:
    """Tell whether a service may use a package unchanged, without duties to its users: by each
    part that holds together with others, and by one of those to choose from."""
    parts = re.split(r" AND |, ", licence)
    return all(any(map(_has_free_name, re.split(r" OR |/", part))) for part in parts)


def _has_free_name(licence: str) -> bool:
    return not FREE.isdisjoint(re.findall(r"\w+", licence))


def installed() -> dict[str, tuple[str, str]]:
    """Return the version and licence of each package of this environment, by name."""
    rows: dict[str, tuple[str, str]] = {}
    for each in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()
        if name not in OF_THE_ENVIRONMENT | {OURS}:
            given = {key: str(each.metadata[key]) for key in each.metadata}
            classifiers = each.metadata.get_all("Classifier") or ()
            rows[name] = each.version, licence_of(given, classifiers)
    return dict(sorted(rows.items()))


def vendored() -> dict[str, tuple[str, str]]:
    """Return the version and licence of what the wheel itself holds of others, from its files."""
    folder = Path(__file__).parents[1] / "litellm_messplus" / "page" / "static" / "vendor"
    version = re.search(r"\(v([\d.]+)\)", (folder / "uPlot.iife.min.js").read_text("utf-8"))
    licence = re.search(r"The (\w+) License", (folder / "LICENSE").read_text("utf-8"))
    assert version is not None
    assert licence is not None
    return {"uPlot": (version[1], licence[1])}


def main() -> None:
    """Print the table; with `--check`, fail on the packages whose licence is not known as free."""
    rows = installed() | vendored()
    print("| Package | Version | Licence |\n| --- | --- | --- |")
    for name, (version, licence) in rows.items():
        reason = f": {USED_AS_IT_IS[name]}" if name in USED_AS_IT_IS else ""
        print(f"| {name} | {version} | {licence}{reason} |")
    doubtful = [
        f"{name} ({licence})"
        for name, (_, licence) in rows.items()
        if name not in USED_AS_IT_IS and not is_free(licence)
    ]
    if "--check" in sys.argv and doubtful:
        raise SystemExit(f"release: read the licences of {', '.join(doubtful)}")


if __name__ == "__main__":
    main()
