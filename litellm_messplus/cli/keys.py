"""The proxy's master key, for a start without one: made once, kept in a file of the owner's. And
the options by which commands find a history, or a proxy and a key of it."""

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

FILE = Path("var/master_key")
VARIABLE = "LITELLM_MASTER_KEY"

HistoryDatabase = Annotated[
    str | None,
    typer.Option(
        help="Where the history is kept: the value of messplus.database, or a SQLite file. "
        "Default: var/messplus.db if it exists, else messplus.db."
    ),
]
ProxyUrl = Annotated[
    str | None,
    typer.Option(help="Ask a running proxy instead, such as http://127.0.0.1:4000."),
]
ProxyKey = Annotated[
    str | None,
    typer.Option(help=f"A key of that proxy. Default: {VARIABLE}, else {FILE}."),
]


def find_or_make() -> str:
    """Return the key of the environment, else of the file, which is made on the first start."""
    known = _known()
    if known is not None:
        return known
    key = f"sk-{secrets.token_urlsafe(32)}"
    FILE.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
    return key


def find() -> str:
    """Return the key of the environment, else of the file.

    Raises SystemExit with what to do where there is neither.
    """
    known = _known()
    if known is None:
        raise SystemExit(
            f"messplus: no key. Start the proxy with `messplus up` (it writes {FILE}), "
            f"set {VARIABLE}, or give --key."
        )
    return known


def _known() -> str | None:
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return FILE.read_text().strip() if FILE.exists() else None
