"""`messplus labels` and `messplus teach`: what is known from elsewhere is put into the log."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

# `messplus labels`: its sub-commands and their options.

app = typer.Typer(help="Import labels from other systems.", no_args_is_help=True)


@app.callback()
def labels() -> None:
    """Import labels from other systems."""


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file of labels (.csv, .jsonl, .json or .parquet) with the columns id, and "
            "satisfied or score; or an export of Open WebUI or Langfuse.",
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            help="The proxy's configuration, which names the database and each zoo's "
            "response_bias. Default, without --database: proxy_config.yaml."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="Used in place of --config: the value of messplus.database, or a SQLite file. "
            "Every label then has the weight 1."
        ),
    ] = None,
    form: Annotated[
        Literal["auto", "rows", "openwebui", "langfuse"],
        typer.Option(
            "--format", help="The format of the file; `auto` finds it out from the first row."
        ),
    ] = "auto",
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who judged, for rows that do not say it; logged as import:NAME. Default: the "
            "name of the format.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The score to import, for a Langfuse export that has several."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the input and show the result, but write nothing."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the lines.")
    ] = False,
) -> None:
    """Import what users of another system said about answers that the log knows.

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
        Path, typer.Option(help="The proxy's configuration: database, encoder and zoo.")
    ] = Path("proxy_config.yaml"),
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=CANDIDATE",
            help="A model of the file, and the candidate that it is; repeat it for each model.",
        ),
    ] = None,
    from_zoo: Annotated[
        str | None, typer.Option(help="The zoo whose log teaches, where FILE is a database.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the input and show the result, but write nothing."),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Take back what these files taught; without a file, all lessons."
        ),
    ] = False,
) -> None:
    """Teach a zoo from recorded requests: it then starts as if it had seen them itself."""
    # LiteLLM would ask the network for prices when it is imported; its package has them too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.teaching import command

    pairs = [pair.partition("=") for pair in rename or ()]
    if any(not model or not candidate for model, _, candidate in pairs):
        given = ", ".join(rename or ())
        raise typer.BadParameter(f"given {given}; allowed: MODEL=CANDIDATE", param_hint="--rename")
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
