"""`messplus teach`: read, check, show, and write all lessons of the command or none."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.errors import MessplusError
from litellm_messplus.records import LessonRecord
from litellm_messplus.settings.load import load_settings, read_config
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import lessons, log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.teaching.lessons import Batch, TeachingError, read_batch
from litellm_messplus.zoo import Zoo


def teach(
    sources: Sequence[str],
    config: Path,
    zoo_name: str,
    *,
    renamed: Mapping[str, str],
    from_zoo: str | None,
    dry_run: bool,
) -> None:
    """Put what the sources tell into the log of the configured database, in one transaction.

    Raises MessplusError with the reason, before anything is written.
    """
    settings, zoo = _configured(config, zoo_name)
    encoder = load_encoder(settings.encoder)
    batches = [
        read_batch(source, zoo, encoder, renamed=renamed, from_zoo=from_zoo) for source in sources
    ]
    records = [record for batch in batches for record in batch.records]
    if not records:
        raise TeachingError("no lesson in it: no answer was judged")
    console = Console(highlight=False)
    for batch in batches:
        console.print(_table(batch))
    if dry_run:
        console.print("dry run: nothing was written")
        return
    asyncio.run(_write(settings.database, records))
    console.print(
        f"{len(records)} lessons are in the log of {zoo.name}; a running proxy knows them in a "
        "second or two. To take them back: messplus teach --forget with the same sources"
    )


def forget(sources: Sequence[str], config: Path, zoo_name: str, *, dry_run: bool) -> None:
    """Take lessons back: of these sources, or of all where none is named."""
    settings, zoo = _configured(config, zoo_name)
    found = asyncio.run(_forget(settings.database, zoo.name, sources, dry_run=dry_run))
    console = Console(highlight=False)
    if dry_run:
        console.print(f"dry run: {found} lessons would be taken back")
        return
    console.print(
        f"{found} lessons were taken back. A proxy that is running knows them until it is "
        "restarted; its next start folds the whole log"
    )


def _configured(config: Path, zoo_name: str) -> tuple[MessplusSettings, Zoo]:
    from litellm_messplus.proxy.deployments.index import configured_zoos

    given = read_config(config)
    settings = load_settings(given)
    zoos = configured_zoos(settings, given)
    if zoo_name not in zoos:
        raise TeachingError(f"--zoo: given {zoo_name!r}; allowed: {' or '.join(zoos)}")
    zoo = zoos[zoo_name]
    if zoo.settings.policy != "adaptive":
        raise TeachingError(
            f"--zoo: given {zoo_name!r} under policy {zoo.settings.policy!r}; allowed: a zoo under "
            "policy 'adaptive' (the paper's learns from its own explorations alone)"
        )
    return settings, zoo


async def _write(database: str, records: Sequence[LessonRecord]) -> None:
    engine = create_engine(database)
    try:
        await migrate(engine)
        await _refuse_known(engine, records)
        await log.append(engine, records, is_durable=True)
    except IntegrityError as error:
        raise TeachingError(
            "given a source that was taught before; allowed: each once (--forget takes it back)"
        ) from error
    finally:
        await engine.dispose()


async def _refuse_known(engine: AsyncEngine, records: Sequence[LessonRecord]) -> None:
    """Refuse lessons that are pruned: no row says any more that they were taught."""
    for zoo in {record.zoo for record in records}:
        given = {record.batch for record in records if record.zoo == zoo}
        known = sorted(given & (await lessons.lasting(engine, zoo)).keys())
        if known:
            raise TeachingError(
                f"given {', '.join(known)}, which was taught before the log was pruned, and lasts; "
                "allowed: each once"
            )


async def _forget(database: str, zoo: str, sources: Sequence[str], *, dry_run: bool) -> int:
    engine = create_engine(database)
    try:
        await migrate(engine)
        known = await lessons.counts(engine, zoo)
        strangers = [source for source in sources if source not in known]
        if strangers or not known:
            raise MessplusError(
                f"--forget: given {', '.join(strangers) or 'nothing'}; allowed: a source that "
                f"{zoo} was taught ({', '.join(known) or 'there is none'})"
            )
        batches = list(sources or known)
        if dry_run:
            async with engine.connect() as connection:
                await lessons.refuse_lasting(connection, zoo, batches)
            return sum(known[batch] for batch in batches)
        return await lessons.forget(engine, zoo, batches)
    finally:
        await engine.dispose()


def _table(batch: Batch) -> Table:
    table = Table(title=batch.name, caption="; ".join(batch.notes) or None)
    table.add_column("candidate")
    table.add_column("lessons", justify="right")
    table.add_column("satisfied", justify="right")
    for name, found in batch.by_candidate.items():
        table.add_row(name, str(found.lessons), f"{found.satisfied:.1%}")
    return table
