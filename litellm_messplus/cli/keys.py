"""The options by which commands find a history, or a proxy and a key of it."""

import os
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


def find() -> str:
    """Return the key of the environment, else of the file.

    Raises SystemExit with what to do where there is neither.
    """
    key = known()
    if key is None:
        raise SystemExit(
            f"messplus: no key. Start the proxy with `make run` (it writes {FILE}), "
            f"set {VARIABLE}, or give --key."
        )
    return key


def known() -> str | None:
    """Return the key of the environment, else of the file, else None."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return FILE.read_text().strip() if FILE.exists() else None
