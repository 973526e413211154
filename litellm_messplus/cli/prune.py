"""`messplus prune`: its options."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from litellm_messplus.retention.prune import Pruned

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


def prune(
    before: Annotated[
        datetime | None,
        typer.Option(
            formats=DATES,
            help="Requests that were decided before then go; at least a day ago, in UTC.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where their rows go to, as Parquet files."),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Delete them without an archive.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")
    ] = False,
    database: Annotated[
        str | None,
        typer.Option(
            help="What to prune: the value of messplus.database, or a SQLite file. Left out: "
            "var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    forget_zoo: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZOO",
            help="A zoo that no proxy serves any more, whose state need not be kept; give it once "
            "for each.",
        ),
    ] = None,
    begin_anew: Annotated[
        str | None,
        typer.Option(
            metavar="ZOO",
            help="Alone: forget what the pruned requests of a zoo taught, so that it can start "
            "under other settings from those that are left.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the table.")
    ] = False,
) -> None:
    """Move old requests out of the log; what they taught stays. It may run beside a proxy."""
    import asyncio

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.retention import prune as pruning
    from litellm_messplus.status.source import default_database

    place = database or default_database()
    try:
        if begin_anew is not None:
            _begin_anew(place, begin_anew)
            return
        ways = (to is not None) + drop
        if before is None or ways > 1 or (ways == 0 and not dry_run):
            raise SystemExit("messplus: give --before, and one of --to FOLDER and --drop")
        if dry_run:
            found = asyncio.run(pruning.dry_run(place, before, forget_zoo or ()))
        else:
            found = asyncio.run(pruning.prune(place, before, to, forget_zoo or ()))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    _show(found, as_json=as_json)


def _begin_anew(database: str, zoo: str) -> None:
    import asyncio

    from litellm_messplus.retention.prune import begin_anew

    if not asyncio.run(begin_anew(database, zoo)):
        raise SystemExit(f"messplus: --begin-anew: given {zoo!r}, of which nothing was pruned")
    print(f"the next start of {zoo} learns anew from the requests that are left")


def _show(found: "Pruned", *, as_json: bool) -> None:
    import json

    from rich.console import Console

    from litellm_messplus.retention.render import render

    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        Console(highlight=False).print(*render(found), sep="\n")
