"""Debian's packages that tests need: a test whose package is missing is skipped, and says which.

    python -m tests.support.packages

prints those that are missing here.
"""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

REQUIRE_ALL = "MESSPLUS_REQUIRE_ALL"
"""Where the environment has it, a test whose package is missing fails."""
INSTALL = "apt-get install"
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "pgbouncer": ("pgbouncer",),
    "postgresql": ("initdb",),
    "prometheus": ("prometheus",),
    "sqlite3": ("sqlite3",),
    "systemd": ("systemd-analyze",),
}
"""The first of them that is found stands for its package."""
POSTGRES = "/usr/lib/postgresql"
"""Debian keeps Postgres out of the PATH, each version in a folder of its own."""


def find(package: str) -> Path | None:
    """The program of a package, None where it is not installed."""
    versions = sorted(Path(POSTGRES).glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ["PATH"], *map(str, versions)])
    found = (shutil.which(name, path=path) for name in PROGRAMS[package])
    return next((Path(each) for each in found if each is not None), None)


def program(package: str) -> Path:
    """The program of a package; skips the test, or fails it, where it is not installed."""
    __tracebackhide__ = True
    found = find(package)
    if found is None:
        (pytest.fail if os.environ.get(REQUIRE_ALL) else pytest.skip)(f"{INSTALL} {package}")
    return found


def summary(reasons: Iterable[str]) -> str | None:
    """One line for the tests that were skipped for these reasons, where packages were missing."""
    found = [named[1] for why in reasons if (named := re.search(rf"{INSTALL} (\w+)", why))]
    packages = " ".join(sorted(set(found)))
    return f"skipped {len(found)} tests: {INSTALL} {packages}" if found else None


if __name__ == "__main__":
    print(*(package for package in PROGRAMS if find(package) is None))
