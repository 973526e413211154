"""Reading the commands that a page shows."""

import re
import shlex

from tests.support.markdown import Document

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
