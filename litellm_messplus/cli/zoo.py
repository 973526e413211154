"""`messplus zoo`: its options."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.options import AsJson, ProxyAddress, ProxyKey
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.switching.modes import Mode, mode_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
        print("\n".join(lines(each)))


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


def lines(found: "dict[str, Any]") -> "Iterator[str]":
    """Yield the lines on one zoo."""
    from litellm_messplus.status.switches import forecasts

    yield f"{found['zoo']}: {_mode(found)}"
    by = f"  {found['by']}" + (f", {found['at']}" if found["at"] else "")
    yield by + (f": {found['reason']}" if found["reason"] else "")
    if found["is_returned"]:
        last = next((each["mode"] for each in found["history"][1:]), "canary")
        yield f"  returned by itself; resume with: messplus zoo {found['zoo']} --mode {last}"
    if expected := list(forecasts(found)):
        yield f"  {'; '.join(expected)}"
    for each in found["history"][:1]:
        yield from _held(each, "  forecast at the switch", "  routed since")
    for each in found["history"][1:]:
        yield f"  before: {_mode(each)} ({each['by']}, {each['at']}: {each['reason']})"
        yield from _held(each, "    forecast", "    happened")


def _held(change: "dict[str, Any]", forecast: str, happened: str) -> "Iterator[str]":
    """Yield the forecast of a change, followed by what then happened; nothing if no request was
    routed after it."""
    from litellm_messplus.status.switches import forecast_in_words, happened_in_words

    if change["mode"] == Mode.WATCH:
        return
    if change["forecast"]:
        yield f"{forecast}: {forecast_in_words(change['forecast'])}"
    if change["happened"]:
        yield f"{happened}: {happened_in_words(change['happened'])}"


def _mode(found: "dict[str, Any]") -> str:
    return mode_in_words(found["mode"], found["share"], found["before"])
