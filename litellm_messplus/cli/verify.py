"""`messplus verify`: its options."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import keys

if TYPE_CHECKING:
    from litellm_messplus.upkeep.finding import Report


def verify(
    database: Annotated[
        str | None,
        typer.Option(
            help="What to check: the value of messplus.database, or a SQLite file. Left out: that "
            "of --config, else var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Of the proxy: with it the log is folded, and held against snapshots."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Of the running proxy, such as http://127.0.0.1:4000: its queues are held against "
            "the log's. Needs --config."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help=f"A key of that proxy; left out, {keys.VARIABLE}, else {keys.FILE}."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the table.")
    ] = False,
) -> None:
    """Check that a database is sound, and that the state is what the log says. It is only read."""
    from litellm_messplus.errors import MessplusError

    if url is not None and config is None:
        raise SystemExit("messplus: --url needs --config, which says what the log folds into")
    try:
        report = _verified(database, config, url, key)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    _show(report, as_json=as_json)
    if report.wrong:
        raise typer.Exit(1)


def _verified(
    database: str | None, config: Path | None, url: str | None, key: str | None
) -> "Report":
    import asyncio
    from functools import partial

    from litellm_messplus.cli.status import ask_proxy
    from litellm_messplus.status.source import default_database
    from litellm_messplus.upkeep.configured import read_configured
    from litellm_messplus.upkeep.verify import verify as check

    configured = None if config is None else read_configured(config)
    if database is None:
        database = default_database() if configured is None else configured.database
    ask = None if url is None else partial(ask_proxy, url, key or keys.find(), 1)
    return asyncio.run(check(database, configured, ask))


def _show(report: "Report", *, as_json: bool) -> None:
    import json

    from rich.console import Console

    from litellm_messplus.upkeep.render import render

    if as_json:
        print(json.dumps(report.as_dict()))
        return
    Console(highlight=False).print(render(report))
    for finding in report.wrong:
        print(f"messplus: {finding.check}: {finding.line}")
