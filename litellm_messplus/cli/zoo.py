"""`messplus zoo`: its options."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.options import AsJson, ProxyAddress, ProxyKey
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.switching.modes import Mode, mode_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping


def zoo(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The zoo; left out, all are shown.")
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option(help="Serve as before and watch, route a share, or all.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="The share of conversations that a canary routes.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(help="What serves the others: `litellm`, a candidate, or `group:NAME`."),
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason, shown in the history.")] = "",
    url: ProxyAddress = options.LOCAL,
    key: ProxyKey = None,
    as_json: AsJson = False,
) -> None:
    """Show how far a zoo is switched on and what routing would cost; change it for all workers."""
    import json

    wanted = {"mode": mode, "share": share, "before": before}
    given = {option: value for option, value in wanted.items() if value is not None}
    if name is None and given:
        raise MessplusError(f"--{next(iter(given))} needs the NAME of a zoo")
    found = _found(url, key or options.find(), name, given, reason)
    if as_json:
        print(json.dumps(found if name is None else found[0]))
        return
    for each in found:
        print(shown(each), end="")


def _found(
    url: str, key: str, name: str | None, given: "Mapping[str, Any]", reason: str
) -> list[dict[str, Any]]:
    from urllib.parse import quote

    from litellm_messplus.inspecting.client import call_route

    if name is None:
        return list(call_route("GET", url, key, "zoos"))
    route = f"zoos/{quote(name)}"
    found = call_route("GET", url, key, route)
    if given:
        body = {**given, "reason": reason, "revision": found["revision"]}
        found = call_route("PATCH", url, key, route, body)
    return [found]


def shown(found: "dict[str, Any]") -> str:
    """Write the lines on one zoo."""
    from litellm_messplus.figures.templates import filled
    from litellm_messplus.status.switches import forecasts, in_words

    words = {"forecasts": list(forecasts(found)), "in_words": in_words, "mode": mode_in_words}
    return filled("cli/zoo.j2", zoo=found, **words)
