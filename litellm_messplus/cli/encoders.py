"""`messplus encoders`: its options."""

import os
from typing import Annotated

import typer


def encoders(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Recorded zoos, as `messplus replay` reads them; of a database, the requests "
            "whose text was kept.",
        ),
    ],
    alpha: Annotated[
        list[float],
        typer.Option(
            help="The share of requests that must be satisfied in the replay; for several files, "
            "one for all of them, or given once for each in their order."
        ),
    ],
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A value of the setting `encoder`; give it once for each encoder. Left out: "
            "hashed-ngrams, and none, which does not read the prompt.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs: seed s shuffles the requests.")] = 5,
    mix: Annotated[
        bool, typer.Option("--mix", help="One stream: all files shuffled together.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="A JSON object, or a list of one for each file, and no table."),
    ] = False,
) -> None:
    """Compare encoders on recorded requests: does reading the prompt pay, and with which?"""
    # Before numpy is imported: its matrices are small here, and more threads only wait in turn.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.replay.encoders_command import run
    from litellm_messplus.replay.joining import Joining

    try:
        status = run(
            files,
            alpha,
            list(dict.fromkeys(encoder or ("hashed-ngrams", "none"))),
            seeds=seeds,
            joining=Joining.MIXED if mix else Joining.SEPARATE,
            as_json=as_json,
        )
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    raise typer.Exit(status)
