"""Options shared by commands: the history, a running proxy and its key, JSON."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from litellm_messplus.runtime.errors import MessplusError

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
    typer.Option(help="Query a running proxy instead, such as http://127.0.0.1:4000."),
]
ProxyAddress = Annotated[str, typer.Option(help="The address of the running proxy.")]
LOCAL = "http://127.0.0.1:4000"
ProxyKey = Annotated[
    str | None,
    typer.Option(help=f"A key of that proxy. Default: {VARIABLE}, else {FILE}."),
]
Config = Annotated[Path, typer.Option(help="The proxy's configuration, as for `litellm --config`.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON in place of the text.")]


def find() -> str:
    """Return the key from the environment, else from the file.

    Raises MessplusError, with what to do, if there is neither.
    """
    key = known()
    if key is None:
        raise MessplusError(
            f"no key. Start the proxy with `make run` (it writes {FILE}), "
            f"set {VARIABLE}, or give --key."
        )
    return key


def known() -> str | None:
    """Return the key from the environment, else from the file, else None."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return FILE.read_text().strip() if FILE.exists() else None


def history(database: str | None, url: str | None = None) -> str:
    """Return the URL of the database to read. Raises MessplusError if a proxy is named too."""
    from litellm_messplus.status.build import default_database

    if database is not None and url is not None:
        raise MessplusError("give --url or --database, not both")
    return database or default_database()


def without_network() -> None:
    """Make LiteLLM read prices from its own package: its import would download them otherwise."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def show(found: Any, *text: Any, as_json: bool) -> None:
    """Print what a command found, as JSON or as these lines and tables."""
    from litellm_messplus.runtime import terminal

    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        terminal.show(*text)
