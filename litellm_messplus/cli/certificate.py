"""`messplus certificate`: its options."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from litellm_messplus.cli.keys import HistoryDatabase


def certificate(
    zoo: Annotated[str, typer.Argument(metavar="ZOO", help="The zoo's `model_name`.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="Of requests from the beginning of that day on, UTC. Left out: of all in the log.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="The confidence, from 0.5 to below 1: how often it is right.")
    ] = 0.95,
    wait: Annotated[
        float,
        typer.Option(min=0.0, help="Hours that labels may take: younger requests are left out."),
    ] = 0.0,
    window: Annotated[int, typer.Option(min=1, help="Requests of the last window.")] = 500,
    trust_judge: Annotated[
        bool,
        typer.Option(
            "--trust-judge",
            help="Take the judge at its word, instead of correcting it by what users said of the "
            "same requests.",
        ),
    ] = False,
    database: HistoryDatabase = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the page.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write it to that file, and print nothing.")
    ] = None,
) -> None:
    """Show how far each promise of a zoo was kept: claim, evidence, assumptions, and the SQL."""
    import asyncio
    import json
    from datetime import timedelta

    from litellm_messplus.certificate.claim import certificate_of
    from litellm_messplus.certificate.page import page
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.status.build import default_database

    if not 0.5 <= level < 1.0:
        raise SystemExit(f"messplus: --level: given {level:g}; allowed: from 0.5 to below 1")
    day = None if since is None else since.date()
    try:
        found = asyncio.run(
            certificate_of(
                database or default_database(),
                zoo,
                day,
                level=level,
                wait=timedelta(hours=wait),
                window=window,
                trust_judge=trust_judge,
            )
        )
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    shown = json.dumps(found.as_dict()) + "\n" if as_json else page(found)
    if output is None:
        print(shown, end="")
        return
    try:
        output.write_text(shown, encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"messplus: --output: {error}") from error
