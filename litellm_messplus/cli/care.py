"""`messplus brain`, `verify` and `prune`: a brain for several machines, and its database."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.options import AsJson, HistoryDatabase
from litellm_messplus.runtime.errors import ConfigurationError, MessplusError

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
]


def brain(config: options.Config = Path("proxy_config.yaml")) -> None:
    """Run the brain of proxies on several machines, at the address that `messplus.brain` states.

    A second one waits until the first ends, and then takes its place. Stopped by SIGTERM.
    """
    options.without_network()
    from litellm_messplus.serving.litellm_fit import check_file, check_litellm

    check_file(config)  # before the seconds that LiteLLM takes to load
    check_litellm()
    from litellm_messplus.brain.place import brain_settings
    from litellm_messplus.brain.process import as_service, prepare
    from litellm_messplus.serving.configuration import honoured
    from litellm_messplus.serving.litellm_seam import proxy_configuration

    settings, zoos = honoured(proxy_configuration(str(config)))
    if not settings.brain.startswith("tcp://"):
        allowed = "`tcp://host:port`; else the proxy starts its brain itself"
        raise ConfigurationError("messplus.brain", settings.brain, allowed)
    prepare()
    asyncio.run(as_service(brain_settings(settings, zoos)))


def verify(database: HistoryDatabase = None, as_json: AsJson = False) -> None:
    """Check that a database is undamaged: its file, its order, its references. Writes nothing."""
    from litellm_messplus.upkeep import verify as verifying

    report = asyncio.run(verifying.verify(options.history(database)))
    if as_json:
        print(json.dumps(report.as_dict()))
    elif not report.faults:
        print(f"{report.database} is sound")
    else:
        print("\n".join(f"messplus: {fault}" for fault in report.faults))
    if report.faults:
        raise typer.Exit(1)


# `messplus prune`: its options.

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


def prune(
    before: Annotated[
        datetime | None,
        typer.Option(
            formats=DATES,
            help="Delete the requests decided before this time, in UTC; at least a day ago.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HASH_OR_ALIAS",
            help="Erase what identifies the requests of one key, and their content.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same for one user, of the key or of the client."),
    ] = None,
    dry_run: DryRun = False,
    database: HistoryDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Delete old requests from the log, or erase what identifies them; what they taught stays.

    A proxy may be running.
    """
    from litellm_messplus.upkeep import prune as pruning

    if [before, key, user].count(None) != 2:
        raise MessplusError("give one of --before, --key and --user")
    place = options.history(database)
    if before is not None:
        taking = pruning.prune(place, before, is_dry_run=dry_run)
    else:
        taking = pruning.erase(place, pruning.Owner(key, user), is_dry_run=dry_run)
    removed = asyncio.run(taking)
    options.show(removed, removed.text, as_json=as_json)
