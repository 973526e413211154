"""`messplus explain`: its options."""

from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import keys

if TYPE_CHECKING:
    from litellm_messplus.inspecting.logged import Logged


def explain(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id of an answer, its x-litellm-call-id or its x-messplus-request-id header.",
        ),
    ],
    database: Annotated[
        str | None,
        typer.Option(
            help="Where the history is kept: the value of messplus.database, or a SQLite file. "
            "Left out: var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Ask a running proxy instead, such as http://127.0.0.1:4000."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help=f"A key of that proxy; left out, {keys.VARIABLE}, else {keys.FILE}."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the text.")
    ] = False,
) -> None:
    """Explain one request: who served and why, what was expected, what it cost, what was said."""
    import json

    from rich.console import Console

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.inspecting.explain import explain as explained
    from litellm_messplus.inspecting.render import render_explanation

    if url is not None and database is not None:
        raise SystemExit("messplus: give --url or --database, not both")
    if not given.strip():
        raise SystemExit(f"messplus: ID: given {given!r}; allowed: the id of a request")
    try:
        found = explained(_logged(given, database, url, key))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        Console(highlight=False).print(render_explanation(found))


def _logged(given: str, database: str | None, url: str | None, key: str | None) -> "Logged":
    import asyncio

    from litellm_messplus.inspecting.asking import logged_by
    from litellm_messplus.inspecting.logged import logged_in
    from litellm_messplus.status.source import default_database

    if url is not None:
        return logged_by(url, key or keys.find(), given)
    return asyncio.run(logged_in(database or default_database(), given))
