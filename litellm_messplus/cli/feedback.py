"""`messplus feedback`: its options."""

from typing import Annotated

import typer

from litellm_messplus.cli import keys


def feedback(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id of an answer, its x-litellm-call-id or its x-messplus-request-id header.",
        ),
    ],
    satisfied: Annotated[
        bool | None,
        typer.Option("--satisfied/--unsatisfied", help="Whether the answer satisfied; give one."),
    ] = None,
    comment: Annotated[str | None, typer.Option(help="Why, in your words.")] = None,
    url: Annotated[str, typer.Option(help="Of the running proxy.")] = "http://127.0.0.1:4000",
    key: Annotated[
        str | None,
        typer.Option(help=f"A key of that proxy; left out, {keys.VARIABLE}, else {keys.FILE}."),
    ] = None,
) -> None:
    """Say whether an answer satisfied. The proxy replies when the verdict is durable."""
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.inspecting.asking import send_feedback

    if satisfied is None:
        raise SystemExit("messplus: no verdict given; allowed: --satisfied or --unsatisfied")
    try:
        print(send_feedback(url, key or keys.find(), given, satisfied, comment))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
