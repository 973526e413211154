"""`messplus status`, `requests` and `certificate`: the commands of every day."""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.options import AsJson, HistoryDatabase, ProxyKey, ProxyUrl
from litellm_messplus.runtime.errors import MessplusError

if TYPE_CHECKING:
    from litellm_messplus.figures.figure import Plain

# `messplus status`: the state of each promise, and its cost.


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
    as_json: AsJson = False,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui",
            help="Print instead a link to the page of a running proxy. It signs in once, within "
            "five minutes.",
        ),
    ] = False,
) -> None:
    """Show where each promise stands, at what cost, and what needs attention."""
    if ui:
        if full or as_json or database is not None:
            raise MessplusError("--ui goes with --url and --key alone")
        print(link((url or options.LOCAL).rstrip("/"), key or options.find()))
        return
    place = options.history(database, url)
    if full and as_json:
        raise MessplusError("--full does not go with --json")
    from litellm_messplus.status.build import status_of

    if url is not None:
        found = fetch_status(url, key, window)
    else:
        found = asyncio.run(status_of(place, window))
    if as_json:
        print(json.dumps(found))
    else:
        _print(found, full=full)


def fetch_status(url: str, key: str | None, window: int) -> "Plain":
    """Fetch `GET /messplus/status` of a running proxy.

    Raises NoAnswerError if the answer is anything else, or if there is none.
    """
    from litellm_messplus.inspecting.client import OtherServerError, call_route
    from litellm_messplus.status.build import Rows, build_status

    found = call_route("GET", url, key or options.find(), "status", window=window)
    if not isinstance(found, dict) or found.keys() != build_status(Rows(), window).keys():
        raise OtherServerError(url)
    return found


def link(url: str, key: str) -> str:
    """Create a one-time link. Raises NoAnswerError if the proxy gives none.

    The code is behind the `#`, which browsers do not send: no server logs it.
    """
    from litellm_messplus.inspecting.client import (
        NoAnswerError,
        NoRouteError,
        OtherServerError,
        call_route,
    )

    try:
        return f"{url}/messplus/ui/#code={call_route('POST', url, key, 'ui/codes')['code']}"
    except (TypeError, KeyError) as error:
        raise OtherServerError(url) from error
    except NoRouteError as error:
        raise NoAnswerError(
            f"the proxy on {url} has no page: it runs without the plugin, or with DISABLE_ADMIN_UI"
        ) from error


def _print(found: "Plain", *, full: bool) -> None:
    """Print a line for each promise and alert, of any length, and the tables if requested."""
    from rich.console import Console

    from litellm_messplus.runtime.terminal import show
    from litellm_messplus.status.render import alert_lines, render, summary

    console = Console(highlight=False)
    for line in (*summary(found), *alert_lines(found)):
        console.print(line, soft_wrap=True)
    if not found["levels"]:
        console.print("no requests yet")
    elif full:
        show(render(found))
    else:
        console.print("messplus status --full shows the tables")


# `messplus requests`: what happened to requests, or to one.


def requests(
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="Explain this one: the id of an answer, its x-litellm-call-id or its "
            "x-messplus-request-id header. Left out, the newest are listed.",
        ),
    ] = None,
    database: HistoryDatabase = None,
    url: ProxyUrl = None,
    key: ProxyKey = None,
    last: Annotated[int, typer.Option(help="How many requests to list, from 1 to 1000.")] = 20,
    zoo: Annotated[str | None, typer.Option(help="List only requests of this zoo.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="List only requests that this candidate was chosen for, or served."),
    ] = None,
    unsatisfied: Annotated[
        bool, typer.Option("--unsatisfied", help="List only requests with a verdict below 0.5.")
    ] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="List only requests that got no answer.")
    ] = False,
    of_key: Annotated[
        str | None,
        typer.Option(help="List only requests of the key with this alias, or hash that begins so."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the newest requests, or explain one: what was chosen, why, whether it satisfied, and
    what it cost."""
    place = options.history(database, url)
    if given is not None:
        if zoo or model or unsatisfied or failed or of_key:
            raise MessplusError("ID: given with an option of the list; allowed: an ID, or those")
        _explain(given, place, url, key, as_json=as_json)
        return
    if url is not None:
        raise MessplusError("--url needs the ID of a request: a list is read from the database")
    from litellm_messplus.inspecting.listing import Given, Wanted, requests_in
    from litellm_messplus.inspecting.render import render_requests
    from litellm_messplus.runtime.terminal import show

    if failed and unsatisfied:
        raise MessplusError("--failed: given with --unsatisfied; allowed: one of them")
    verdict = Given.FAILED if failed else Given.UNSATISFIED if unsatisfied else None
    wanted = Wanted(zoo, model=model, verdict=verdict, key=of_key)
    found = asyncio.run(requests_in(place, wanted, last))
    if as_json:
        print(json.dumps(found))
    else:
        show(render_requests(found))


def _explain(given: str, place: str, url: str | None, key: str | None, *, as_json: bool) -> None:
    """Show which model served a request and why, what was expected, and what it cost."""
    from litellm_messplus.inspecting.client import logged_by
    from litellm_messplus.inspecting.explain import explain
    from litellm_messplus.inspecting.logged import logged_in
    from litellm_messplus.inspecting.render import render_explanation

    if not given.strip():
        raise MessplusError(f"ID: given {given!r}; allowed: the id of a request")
    if url is not None:
        found = explain(logged_by(url, key or options.find(), given))
    else:
        found = explain(asyncio.run(logged_in(place, given)))
    options.show(found, render_explanation(found), as_json=as_json)


# `messplus certificate`: its options.


def certificate(
    zoo: Annotated[str, typer.Argument(metavar="ZOO", help="The zoo's `model_name`.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="Count requests from the beginning of that day on, UTC. Default: all in the log.",
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
            help="Trust the judge, instead of correcting it by users' labels of the same requests.",
        ),
    ] = False,
    database: HistoryDatabase = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option(help="Write it to that file, and print nothing.")
    ] = None,
) -> None:
    """Show how far each promise of a zoo was kept: claim, evidence, assumptions, and the SQL."""
    from litellm_messplus.certificate.claim import certificate_of, page

    if not 0.5 <= level < 1.0:
        raise MessplusError(f"--level: given {level:g}; allowed: from 0.5 to below 1")
    found = asyncio.run(
        certificate_of(
            options.history(database),
            zoo,
            None if since is None else since.date(),
            level=level,
            wait=timedelta(hours=wait),
            window=window,
            trust_judge=trust_judge,
        )
    )
    shown = json.dumps(found.as_dict()) + "\n" if as_json else page(found)
    if output is None:
        print(shown, end="")
        return
    try:
        output.write_text(shown, encoding="utf-8")
    except OSError as error:
        raise MessplusError(f"--output: {error}") from error
