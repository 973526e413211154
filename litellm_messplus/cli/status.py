"""`messplus status`: where does each promise stand, and at what cost?"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import keys
from litellm_messplus.cli.keys import HistoryDatabase, ProxyKey, ProxyUrl

if TYPE_CHECKING:
    from litellm_messplus.status.report import Status


def status(
    database: HistoryDatabase = None,
    url: ProxyUrl = None,
    key: ProxyKey = None,
    window: Annotated[
        int, typer.Option(min=1, help="How many of the newest requests the last window holds.")
    ] = 500,
    full: Annotated[
        bool, typer.Option("--full", help="Show all tables below the summary.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the lines.")
    ] = False,
    learned: Annotated[
        bool,
        typer.Option(
            "--learned",
            help="Show instead what was learned from the prompts: on which of them each model is "
            "good, how sure that is, and what it saves.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write a picture of how well the predictions held (needs the extra `plot`)."
        ),
    ] = None,
) -> None:
    """Show where each promise stands, at what cost, and what needs attention."""
    from litellm_messplus.errors import MessplusError

    if url is not None and database is not None:
        raise SystemExit("messplus: give --url or --database, not both")
    if learned and plot is not None:
        raise SystemExit("messplus: --plot draws the status, not what was learned")
    if full and (learned or as_json):
        raise SystemExit("messplus: --full goes with neither --json nor --learned")
    try:
        if learned:
            _show_learned(url, key, database, as_json=as_json)
            return
        found = (
            ask_proxy(url, key or keys.find(), window)
            if url is not None
            else _ask_database(database, window)
        )
        _show(found, full=full, as_json=as_json)
        if plot is not None:
            _draw(found, plot)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error


def ask_proxy(url: str, key: str, window: int) -> "Status":
    """Get what `GET /messplus/status` of a running proxy answers.

    Raises NoAnswerError where it answers something else, or not at all.
    """
    from pydantic import ValidationError

    from litellm_messplus.inspecting.asking import OtherServerError, ask
    from litellm_messplus.status.report import Status

    try:
        return Status.of(ask("GET", url, key, "status", window=window))
    except ValidationError as error:
        raise OtherServerError(url) from error


def _show_learned(url: str | None, key: str | None, database: str | None, *, as_json: bool) -> None:
    import json

    from pydantic import ValidationError

    from litellm_messplus.inspecting.asking import OtherServerError, ask
    from litellm_messplus.status.build import default_database
    from litellm_messplus.status.learned import Learned, learned_of, render_learned
    from litellm_messplus.terminal import show

    if url is None:
        found = asyncio.run(learned_of(database or default_database()))
    else:
        try:
            found = Learned.of(ask("GET", url, key or keys.find(), "learned"))
        except ValidationError as error:
            raise OtherServerError(url) from error
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        show(render_learned(found))


def _ask_database(database: str | None, window: int) -> "Status":
    from litellm_messplus.status.build import default_database, status_of

    return asyncio.run(status_of(database or default_database(), window))


def _show(found: "Status", *, full: bool, as_json: bool) -> None:
    import json

    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        _print(found, full=full)


def _print(found: "Status", *, full: bool) -> None:
    """Print a line for each promise and alert, however long, and the tables where asked to."""
    from rich.console import Console

    from litellm_messplus.status.render import alert_lines, render, summary
    from litellm_messplus.terminal import show

    console = Console(highlight=False)
    for line in (*summary(found), *alert_lines(found)):
        console.print(line, soft_wrap=True)
    if not found.levels:
        console.print("no requests yet")
    elif full:
        show(render(found))
    else:
        console.print("messplus status --full shows the tables")


def _draw(found: "Status", path: Path) -> None:
    from litellm_messplus.status.plot import draw

    draw(path, found.calibration)
