"""Reading the commands that a page shows, and running them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.markdown import ROOT, Document

ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def commands(page: Document, *begin: str) -> list[list[str]]:
    """The arguments of every command that begins with these words; variables before it left out."""
    found = []
    for block in page.blocks:
        if block.language == "sh":
            for line in block.code.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                while words and ASSIGNMENT.fullmatch(words[0]):
                    words.pop(0)
                if tuple(words[: len(begin)]) == begin:
                    found.append(words[len(begin) :])
    return found


def option(arguments: list[str], name: str) -> str:
    """The value of an option that is given once."""
    (place,) = (place for place, word in enumerate(arguments) if word == name)
    return arguments[place + 1]


def run(page: Document, heading: str, folder: Path, replaced: Mapping[str, str]) -> str:
    """Run the commands under a heading in a folder, as they stand but for what is ``replaced``, and
    return what they print; the first that fails ends them."""
    (code,) = (
        block.code
        for block in page.blocks
        if block.language == "sh" and block.headings[-1] == heading
    )
    for old, new in replaced.items():
        code = code.replace(old, new)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", code],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
