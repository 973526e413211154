"""`messplus requests`: its options."""

from typing import Annotated

import typer


def requests(
    database: Annotated[
        str | None,
        typer.Option(
            help="Where the history is kept: the value of messplus.database, or a SQLite file. "
            "Left out: var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    last: Annotated[int, typer.Option(help="How many at most, from 1 to 1000.")] = 20,
    zoo: Annotated[str | None, typer.Option(help="Only those of this zoo.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Only those that this candidate was chosen for, or served.")
    ] = None,
    unsatisfied: Annotated[
        bool, typer.Option("--unsatisfied", help="Only those with a verdict below 0.5.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON list in place of the table.")
    ] = False,
) -> None:
    """List the newest requests: what was chosen, why, whether it satisfied, and what it cost."""
    import asyncio
    import json

    from rich.console import Console

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.inspecting.listing import Wanted, requests_in
    from litellm_messplus.inspecting.render import render_requests
    from litellm_messplus.status.source import default_database

    wanted = Wanted(last, zoo, model, unsatisfied)
    try:
        found = asyncio.run(requests_in(database or default_database(), wanted))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps([each.as_dict() for each in found]))
    else:
        Console(highlight=False).print(render_requests(found))
