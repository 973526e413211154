"""`messplus verify`, `prune` and `import`: maintenance of a proxy's database."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.every_day import fetch_status
from litellm_messplus.cli.options import AsJson, HistoryDatabase, ProxyKey
from litellm_messplus.runtime.errors import MessplusError

if TYPE_CHECKING:
    from litellm_messplus.deciding.decider import Engine
    from litellm_messplus.settings.schema import MessplusSettings
    from litellm_messplus.settings.zoo import Zoo

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
]


def read_engines(config: Path) -> "tuple[MessplusSettings, dict[str, Engine]]":
    """Read a configuration as at the start of the proxy, with an engine for each of its zoos.
    Raises ConfigurationError if the proxy could not start with it."""
    from litellm_messplus.upkeep.folding import fresh_engines

    settings, zoos = _read(config)
    return settings, fresh_engines(settings, zoos)


def _read(config: Path | None) -> "tuple[MessplusSettings, dict[str, Zoo]]":
    from litellm_messplus.serving.deployments.index import configured_zoos
    from litellm_messplus.settings.load import load_settings, read_config

    given = read_config(config or Path("proxy_config.yaml"))
    settings = load_settings(given)
    return settings, configured_zoos(settings, given)


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
    as_json: AsJson = False,
) -> None:
    """Check that a database is undamaged and its state follows from its log. Writes nothing."""
    from litellm_messplus.upkeep import verify as verifying

    if url is not None and config is None:
        raise MessplusError("--url needs --config, which states what the log folds into")
    engines = None
    if config is not None:
        settings, engines = read_engines(config)
        database = database or settings.database
    database = options.history(database)
    fetch = None if url is None else partial(fetch_status, url, key, 1)
    report = asyncio.run(verifying.verify(database, engines, fetch))
    options.show(report, verifying.render(report), as_json=as_json)
    if not report.wrong:
        return
    if not as_json:
        for finding in report.wrong:
            print(f"messplus: {finding.check}: {finding.line}")
    raise typer.Exit(1)


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
    dry_run: DryRun = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HASH_OR_ALIAS",
            help="Erase what identifies the requests of one key, and their content; with --drop or "
            "--dry-run. Without --before: of all that are a day old.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same for one user, of the key or of the client."),
    ] = None,
    database: HistoryDatabase = None,
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
            "other settings from the requests left. Allows no other option but --database.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove old requests from the log, or erase what identifies them; what they taught stays.

    A proxy may be running.
    """
    from litellm_messplus.upkeep import erase
    from litellm_messplus.upkeep import prune as pruning

    place = options.history(database)
    if begin_anew is not None:
        if not asyncio.run(pruning.begin_anew(place, begin_anew)):
            raise MessplusError(f"--begin-anew: given {begin_anew!r}, of which nothing was pruned")
        print(f"the next start of {begin_anew} learns anew from the requests that are left")
        return
    if key is not None or user is not None:
        if None not in (key, user) or to is not None or forget_zoo or drop is dry_run:
            raise MessplusError(
                "give --key or --user, and either --drop or --dry-run; an erased request is not "
                "archived"
            )
        take = erase.dry_run if dry_run else erase.erase
        erased = asyncio.run(take(place, erase.Owner(key, user), before))
        print(json.dumps(erased.as_dict()) if as_json else "\n".join(erase.render(erased)))
        return
    ways = (to is not None) + drop
    if before is None or ways > 1 or (ways == 0 and not dry_run):
        raise MessplusError("give --before, and either --to FOLDER or --drop")
    if dry_run:
        found = asyncio.run(pruning.dry_run(place, before, forget_zoo or ()))
    else:
        found = asyncio.run(pruning.prune(place, before, to, forget_zoo or ()))
    options.show(found, *pruning.render(found), as_json=as_json)


# `messplus import`: writes knowledge from elsewhere into the log.


def import_(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="A file of labels (.csv, .jsonl, .json or .parquet) with the columns id, and "
            "satisfied or score; or an export of Open WebUI or Langfuse. With --lessons: recorded "
            "zoos, as `messplus replay` reads them, or the log of another zoo.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="The proxy's configuration: database, encoder, zoos. Default, without "
            "--database: proxy_config.yaml."
        ),
    ] = None,
    dry_run: DryRun = False,
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
            "--format", help="The format of the file; `auto` detects it from the first row."
        ),
    ] = "auto",
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who judged, for rows without that; logged as import:NAME. Default: the name of "
            "the format.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The score to import, for a Langfuse export that has several."
        ),
    ] = None,
    as_json: AsJson = False,
    lessons: Annotated[
        bool,
        typer.Option(
            "--lessons",
            help="Teach a zoo from recorded requests instead: it starts as if it had seen them.",
        ),
    ] = False,
    zoo: Annotated[
        str | None, typer.Option(help="The zoo that --lessons teach: its `model_name`.")
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=CANDIDATE",
            help="A model of the file, and its candidate in the zoo; repeat it for each model.",
        ),
    ] = None,
    from_zoo: Annotated[
        str | None, typer.Option(help="The zoo whose log teaches, if FILE is a database.")
    ] = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Take back what these files taught; without a file, all lessons."
        ),
    ] = False,
) -> None:
    """Import labels of answers in the log, or lessons from recorded requests.

    Exits with status 1 if every label was refused.
    """
    options.without_network()
    of_labels = {"database": database, "source": source, "score": score, "json": as_json}
    of_lessons = {"zoo": zoo, "rename": rename, "from-zoo": from_zoo, "forget": forget}
    for option, given in (of_labels if lessons else of_lessons).items():
        if given:
            with_or_without = "without" if lessons else "with"
            raise MessplusError(f"--{option}: allowed {with_or_without} --lessons alone")
    if lessons:
        found = _taught(
            files or (), config, zoo, rename or (), from_zoo, dry_run=dry_run, forget=forget
        )
        options.show(None, *found, as_json=False)
        return
    if files is None or len(files) > 1:
        raise MessplusError(f"FILE: given {len(files or ())}; allowed: one file of labels")
    if database is not None and config is not None:
        raise MessplusError("--config, --database: given both; allowed: one of them")
    from litellm_messplus.upkeep.importing import import_labels
    from litellm_messplus.upkeep.rows import Format

    settings = None
    if database is None:
        settings, _ = _read(config)
        database = settings.database
    report = asyncio.run(
        import_labels(
            Path(files[0]),
            database,
            {} if settings is None else settings.response_biases,
            form=Format(form),
            source=source,
            score=score,
            is_dry_run=dry_run,
        )
    )
    print(json.dumps(report.as_dict()) if as_json else "\n".join(report.lines()))
    if report.is_in_vain:
        raise typer.Exit(1)


def _taught(
    files: Sequence[str],
    config: Path | None,
    name: str | None,
    renames: Sequence[str],
    from_zoo: str | None,
    *,
    dry_run: bool,
    forget: bool,
) -> Sequence[Any]:
    """Teach the lessons, or take back taught ones; returns what to show."""
    from litellm_messplus.upkeep import lessons

    pairs = [pair.partition("=") for pair in renames]
    if any(not model or not candidate for model, _, candidate in pairs):
        raise MessplusError(f"--rename: given {', '.join(renames)}; allowed: MODEL=CANDIDATE")
    if not files and not forget:
        raise MessplusError("FILE: given none; allowed: at least one, or --forget")
    settings, zoos = _read(config)
    zoo = lessons.taught(zoos, name)
    if forget:
        took = lessons.forget(files, settings.database, zoo.name, is_dry_run=dry_run)
        return [asyncio.run(took)]
    return lessons.teach(
        files,
        settings,
        zoo,
        renamed={model: candidate for model, _, candidate in pairs},
        from_zoo=from_zoo,
        is_dry_run=dry_run,
    )
