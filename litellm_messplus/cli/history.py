"""`messplus explain`, `messplus requests`, `messplus feedback`: what became of a request."""

from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import keys
from litellm_messplus.cli.keys import HistoryDatabase, ProxyKey, ProxyUrl

if TYPE_CHECKING:
    from litellm_messplus.inspecting.logged import Logged

# `messplus explain`: its options.


def explain(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id of an answer, its x-litellm-call-id or its x-messplus-request-id header.",
        ),
    ],
    database: HistoryDatabase = None,
    url: ProxyUrl = None,
    key: ProxyKey = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the text.")
    ] = False,
) -> None:
    """Explain one request: which model served it and why, what was expected, what it cost."""
    import json

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.inspecting.explain import explain as explained
    from litellm_messplus.inspecting.render import render_explanation
    from litellm_messplus.terminal import show

    if url is not None and database is not None:
        raise SystemExit("messplus: give --url or --database, not both")
    if not given.strip():
        raise SystemExit(f"messplus: ID: given {given!r}; allowed: the id of a request")
    try:
        found = explained(_logged(given, database, url, key))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        show(render_explanation(found))


def _logged(given: str, database: str | None, url: str | None, key: str | None) -> "Logged":
    import asyncio

    from litellm_messplus.inspecting.asking import logged_by
    from litellm_messplus.inspecting.logged import logged_in
    from litellm_messplus.status.build import default_database

    if url is not None:
        return logged_by(url, key or keys.find(), given)
    return asyncio.run(logged_in(database or default_database(), given))


# `messplus requests`: its options.


def requests(
    database: HistoryDatabase = None,
    last: Annotated[int, typer.Option(help="How many requests to list, from 1 to 1000.")] = 20,
    zoo: Annotated[str | None, typer.Option(help="List only requests of this zoo.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="List only requests that this candidate was chosen for, or served."),
    ] = None,
    unsatisfied: Annotated[
        bool, typer.Option("--unsatisfied", help="List only requests with a verdict below 0.5.")
    ] = False,
    of_key: Annotated[
        str | None,
        typer.Option(
            "--key", help="List only requests of the key with this alias, or whose hash begins so."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON list in place of the table.")
    ] = False,
) -> None:
    """List the newest requests: what was chosen, why, whether it satisfied, and what it cost."""
    import asyncio
    import json

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.inspecting.listing import Wanted, requests_in
    from litellm_messplus.inspecting.render import render_requests
    from litellm_messplus.status.build import default_database
    from litellm_messplus.terminal import show

    wanted = Wanted(last, zoo, model, unsatisfied, of_key)
    try:
        found = asyncio.run(requests_in(database or default_database(), wanted))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps([each.as_dict() for each in found]))
    else:
        show(render_requests(found))


# `messplus feedback`: its options.


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
        typer.Option(
            "--satisfied/--unsatisfied",
            help="Whether the answer satisfied; one of the two is required.",
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option(help="The reason, in your own words.")] = None,
    url: Annotated[
        str, typer.Option(help="The address of the running proxy.")
    ] = "http://127.0.0.1:4000",
    key: ProxyKey = None,
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
