"""`messplus check`, `messplus verify` and `messplus prune`: would this configuration start, is the
database sound, and what may leave it."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litellm_messplus.cli import keys
from litellm_messplus.cli.keys import ProxyKey
from litellm_messplus.cli.zoo import mode_in_words

if TYPE_CHECKING:
    from litellm_messplus.proxy.checking import Checked
    from litellm_messplus.retention.prune import Pruned
    from litellm_messplus.settings.serving import WatchSettings
    from litellm_messplus.upkeep.finding import VerifyReport

# `messplus check`: is this configuration one that the proxy would start with?


def check(
    config: Annotated[
        Path, typer.Option(help="The proxy's configuration, as for `litellm --config`.")
    ] = Path("proxy_config.yaml"),
    with_encoder: Annotated[
        bool,
        typer.Option("--encoder/--no-encoder", help="Whether to load the encoder and try it out."),
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the tables.")
    ] = False,
) -> None:
    """Check a configuration without starting anything: zoos, modes, candidates, prices, labels.

    Exits with status 1 and one line where the proxy would not start with it.
    """
    # LiteLLM would ask the network for prices when it is imported; its package has them too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import asyncio
    import json
    from dataclasses import replace

    from rich.console import Console

    from litellm_messplus.encoders.lookup import load_encoder
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.proxy.checking import checked, database_notes
    from litellm_messplus.proxy.litellm_fit import check_litellm
    from litellm_messplus.settings.load import read_config

    try:
        check_litellm()
        found = checked(read_config(config))
        of_database = asyncio.run(database_notes(found.database))
        found = replace(found, notes=(*found.notes, *of_database))
        if with_encoder:
            load_encoder(found.encoder)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        _print(found, Console(highlight=False))


def _print(found: "Checked", console: object) -> None:
    from rich.console import Console
    from rich.table import Table

    assert isinstance(console, Console)
    for zoo in found.zoos:
        alphas = ", ".join(f"{name} {alpha:g}" for name, alpha in zoo.alphas.items())
        table = Table(title=f"{zoo.name}: policy {zoo.policy}, alpha {alphas}")
        table.add_column("candidate")
        for column in ("replicas", f"{zoo.cost_unit}/1M prompt", f"{zoo.cost_unit}/1M answer"):
            table.add_column(column, justify="right")
        for each in zoo.candidates:
            name = f"{each.name} (largest)" if each.is_largest else each.name
            table.add_row(name, str(each.replicas), f"{each.prompt:g}", f"{each.completion:g}")
        console.print(table)
        console.print(f"mode: {mode_in_words(zoo.mode, zoo.share, zoo.before)}")
        console.print(f"watch: {_watch(zoo.watch, zoo.cost_unit)}")
        console.print(f"labels: {', '.join(zoo.labels)}")
        for note in zoo.notes:
            console.print(f"note: {note}")
    console.print(f"encoder: {found.encoder}")
    for note in found.notes:
        console.print(f"note: {note}")
    console.print("the proxy would start with this")


def _watch(watch: "WatchSettings", unit: str) -> str:
    budget = watch.budget_per_day
    most = "without a budget" if budget is None else f"for {budget:g} {unit} a day at most"
    return (
        f"of what is served as before, {100.0 * watch.sample:g} % is called unseen, {most}, and "
        f"{watch.decided_per_second:g} requests a second are decided"
    )


# `messplus verify`: its options.


def verify(
    database: Annotated[
        str | None,
        typer.Option(
            help="What to check: the value of messplus.database, or a SQLite file. Default: that "
            "of --config, else var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="The proxy's configuration: with it, snapshots are checked too."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="A running proxy, such as http://127.0.0.1:4000, whose queues are compared with "
            "the log. Needs --config."
        ),
    ] = None,
    key: ProxyKey = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the table.")
    ] = False,
) -> None:
    """Check that a database is undamaged and its state follows from its log. Writes nothing."""
    from litellm_messplus.errors import MessplusError

    if url is not None and config is None:
        raise SystemExit("messplus: --url needs --config, which says what the log folds into")
    try:
        report = _verified(database, config, url, key)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    _show(report, as_json=as_json)
    if report.wrong:
        raise typer.Exit(1)


def _verified(
    database: str | None, config: Path | None, url: str | None, key: str | None
) -> "VerifyReport":
    import asyncio
    from functools import partial

    from litellm_messplus.cli.status import ask_proxy
    from litellm_messplus.status.build import default_database
    from litellm_messplus.upkeep.folding import read_configured
    from litellm_messplus.upkeep.verify import verify as check

    configured = None if config is None else read_configured(config)
    if database is None:
        database = default_database() if configured is None else configured.database
    ask = None if url is None else partial(ask_proxy, url, key or keys.find(), 1)
    return asyncio.run(check(database, configured, ask))


def _show(report: "VerifyReport", *, as_json: bool) -> None:
    import json

    from rich.console import Console

    from litellm_messplus.upkeep.verify import render

    if as_json:
        print(json.dumps(report.as_dict()))
        return
    Console(highlight=False).print(render(report))
    for finding in report.wrong:
        print(f"messplus: {finding.check}: {finding.line}")


# `messplus prune`: its options.

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


def prune(
    before: Annotated[
        datetime | None,
        typer.Option(
            formats=DATES,
            help="Remove the requests decided before this time, in UTC; at least a day ago.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The folder that their rows are moved to, as Parquet files."
        ),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Delete their rows without an archive.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HASH_OR_ALIAS",
            help="Erase what identifies the requests of one key, and what was in them; with --drop "
            "or --dry-run. Without --before: of all that are a day old.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same for one user, of the key or of the client."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="What to prune: the value of messplus.database, or a SQLite file. Default: "
            "var/messplus.db if it exists, else messplus.db."
        ),
    ] = None,
    forget_zoo: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZOO",
            help="A zoo that no proxy serves any more, whose state need not be kept; repeat it for "
            "each.",
        ),
    ] = None,
    begin_anew: Annotated[
        str | None,
        typer.Option(
            metavar="ZOO",
            help="Forget what the pruned requests of a zoo taught, so that it can start under "
            "other settings from those that are left. Takes no other option but --database.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the table.")
    ] = False,
) -> None:
    """Remove old requests from the log, or erase whose they are; what they taught stays. A proxy
    may be running."""
    import asyncio

    from litellm_messplus.errors import MessplusError
    from litellm_messplus.retention import prune as pruning
    from litellm_messplus.status.build import default_database

    place = database or default_database()
    try:
        if begin_anew is not None:
            _begin_anew(place, begin_anew)
            return
        if key is not None or user is not None:
            if None not in (key, user) or to is not None or forget_zoo or drop is dry_run:
                raise SystemExit(
                    "messplus: give --key or --user, and either --drop or --dry-run; an erased "
                    "request is not archived"
                )
            _erase(place, key, user, before, is_dry_run=dry_run, as_json=as_json)
            return
        ways = (to is not None) + drop
        if before is None or ways > 1 or (ways == 0 and not dry_run):
            raise SystemExit("messplus: give --before, and either --to FOLDER or --drop")
        if dry_run:
            found = asyncio.run(pruning.dry_run(place, before, forget_zoo or ()))
        else:
            found = asyncio.run(pruning.prune(place, before, to, forget_zoo or ()))
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    _show_pruned(found, as_json=as_json)


def _erase(
    database: str,
    key: str | None,
    user: str | None,
    before: datetime | None,
    *,
    is_dry_run: bool,
    as_json: bool,
) -> None:
    import asyncio
    import json

    from litellm_messplus.retention import erase

    take = erase.dry_run if is_dry_run else erase.erase
    found = asyncio.run(take(database, erase.Owner(key, user), before))
    print(json.dumps(found.as_dict()) if as_json else "\n".join(erase.render(found)))


def _begin_anew(database: str, zoo: str) -> None:
    import asyncio

    from litellm_messplus.retention.prune import begin_anew

    if not asyncio.run(begin_anew(database, zoo)):
        raise SystemExit(f"messplus: --begin-anew: given {zoo!r}, of which nothing was pruned")
    print(f"the next start of {zoo} learns anew from the requests that are left")


def _show_pruned(found: "Pruned", *, as_json: bool) -> None:
    import json

    from rich.console import Console

    from litellm_messplus.retention.prune import render

    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        Console(highlight=False).print(*render(found), sep="\n")
