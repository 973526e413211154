"""`messplus teach`: its options."""

import os
from pathlib import Path
from typing import Annotated

import typer


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
