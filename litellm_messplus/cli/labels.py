"""`messplus labels` and `messplus teach`: what is known from elsewhere is put into the log."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

# `messplus labels`: its sub-commands and their options.

app = typer.Typer(help="Labels from elsewhere.", no_args_is_help=True)


@app.callback()
def labels() -> None:
    """Bring labels from elsewhere into the log."""


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Of labels: .csv, .jsonl, .json or .parquet, with the columns id, and satisfied "
            "or score; or an export of Open WebUI or Langfuse.",
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            help="Of the proxy: it names the database, and each zoo's response_bias. Left out, "
            "with --database too: proxy_config.yaml."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="In place of --config: the value of messplus.database, or a SQLite file. Every "
            "label then weighs 1."
        ),
    ] = None,
    form: Annotated[
        Literal["auto", "rows", "openwebui", "langfuse"],
        typer.Option("--format", help="Of the file; `auto` tells it from the first row."),
    ] = "auto",
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who judged, where a row does not say: the log has it as import:NAME. Left out, "
            "the format's name.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Of a Langfuse export with several scores: the one to import."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show, and write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the lines.")
    ] = False,
) -> None:
    """Import what users said elsewhere of answers that the log knows.

    Exits with status 1 where every row was refused.
    """
    import asyncio
    import json

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.importing import command
    from litellm_messplus.importing.rows import Format

    try:
        place = command.find_place(config, database)
        report = asyncio.run(
            command.import_labels(
                file, place, form=Format(form), source=source, score=score, is_dry_run=dry_run
            )
        )
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    print(json.dumps(report.as_dict()) if as_json else "\n".join(report.lines()))
    if report.is_in_vain:
        raise typer.Exit(1)


# `messplus teach`: its options.


def teach(
    zoo: Annotated[str, typer.Option(help="The zoo to teach: its `model_name`.")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Recorded zoos, as `messplus replay` reads them, or the log of another zoo: a "
            "SQLite file (.db, .sqlite) or a database's URL.",
        ),
    ] = None,
    config: Annotated[
        Path, typer.Option(help="Of the proxy: it names the database, the encoder and the zoo.")
    ] = Path("proxy_config.yaml"),
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=CANDIDATE",
            help="A model of the file and the candidate that it is; give it once for each.",
        ),
    ] = None,
    from_zoo: Annotated[
        str | None, typer.Option(help="Of a database: the zoo whose log teaches.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and show, and write nothing.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Take back what these files taught; all lessons where none is named."
        ),
    ] = False,
) -> None:
    """Teach a zoo what is known of its models: it then begins as if it had seen those requests."""
    # LiteLLM would ask the network for prices when it is imported; its package has them too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.teaching import command

    pairs = [pair.partition("=") for pair in rename or ()]
    if any(not model or not candidate for model, _, candidate in pairs):
        raise typer.BadParameter("allowed: MODEL=CANDIDATE", param_hint="--rename")
    if not sources and not forget:
        raise typer.BadParameter("given none; allowed: at least one", param_hint="FILE...")
    try:
        if forget:
            command.forget(sources or (), config, zoo, dry_run=dry_run)
        else:
            command.teach(
                sources or (),
                config,
                zoo,
                renamed={model: candidate for model, _, candidate in pairs},
                from_zoo=from_zoo,
                dry_run=dry_run,
            )
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
