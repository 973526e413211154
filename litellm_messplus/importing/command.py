"""`messplus labels import`: read the file, find the calls, write all good labels or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.errors import RequestGoneError
from litellm_messplus.importing.formats import Format
from litellm_messplus.importing.joining import Joined, Weigh, join
from litellm_messplus.importing.readers import Read, read_file
from litellm_messplus.importing.report import Report
from litellm_messplus.importing.rows import LONGEST_SOURCE, ImportingError
from litellm_messplus.proxy.response_bias import ResponseBias
from litellm_messplus.records import LabelRecord
from litellm_messplus.settings.file import read_config
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import AUDIT, MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, explained
from litellm_messplus.store.reading import reading


@dataclass(frozen=True, slots=True)
class Place:
    """Whose log is written to: the database, and the settings where a configuration named it."""

    database: str
    settings: MessplusSettings | None = None


def find_place(config: Path | None, database: str | None) -> Place:
    """The database at a URL or a path, or the one that a configuration names.

    Raises ConfigurationError where that cannot be read.
    """
    if database is None:
        settings = load_settings(read_config(config or Path("proxy_config.yaml")))
        return Place(settings.database, settings)
    if config is not None:
        raise ImportingError("--config, --database: given both; allowed: one of them")
    return Place(database if "://" in database else f"sqlite+aiosqlite:///{database}")


async def import_labels(
    path: Path,
    place: Place,
    *,
    form: Format = Format.AUTO,
    source: str | None = None,
    score: str | None = None,
    is_dry_run: bool = False,
) -> Report:
    """Put the labels of a file into the log, durably and in one transaction.

    Raises MessplusError with the reason, before anything is written.
    """
    _check_source(source)
    read = read_file(path, form, score)
    joined = await _joined(read, place, source or _default_source(read, score))
    if joined.records and not is_dry_run:
        await _write(place.database, joined.records)
    return Report(
        file=str(path),
        form=read.form.value,
        sources=sorted({record.source for record in joined.records}),
        rows=len(read.rows) + len(read.refused) + read.left_out,
        written=len(joined.records),
        known=joined.known,
        left_out=read.left_out,
        refused=[*read.refused, *joined.refused],
        is_dry_run=is_dry_run,
    )


def _check_source(source: str | None) -> None:
    if source is not None and not 0 < len(source) <= LONGEST_SOURCE:
        raise ImportingError(
            f"--source: given {len(source)} characters; allowed: 1 to {LONGEST_SOURCE}"
        )


def _default_source(read: Read, score: str | None) -> str:
    return read.form.value if score is None else f"{read.form}.{score}"[:LONGEST_SOURCE]


async def _joined(read: Read, place: Place, source: str) -> Joined:
    """Reads alone: a database that is not there is not made."""
    async with reading(place.database) as engine:
        weigh: Weigh = _as_it_is
        if place.settings is not None:
            weigh = (await _bias(place.settings, engine)).feedback_weight
        return await join(engine, read.rows, source, weigh)


async def _bias(settings: MessplusSettings, engine: AsyncEngine) -> ResponseBias:
    """As a proxy with these settings would have it now."""
    bias = ResponseBias(settings, engine, Counters())
    if any(zoo.response_bias == AUDIT for zoo in settings.zoos.values()):
        await bias.look()
    return bias


def _as_it_is(zoo: str, level: str, value: float) -> float:
    return 1.0


async def _write(database: str, records: Sequence[LabelRecord]) -> None:
    engine = create_engine(database)
    try:
        with explained(engine):
            await _append(engine, records)
    finally:
        await engine.dispose()


async def _append(engine: AsyncEngine, records: Sequence[LabelRecord]) -> None:
    try:
        await log.append(engine, records, is_durable=True)
    except IntegrityError:
        raise ImportingError(
            "another import wrote some of these labels just now, and nothing was written; allowed: "
            "the same command again"
        ) from None
    except RequestGoneError:
        raise ImportingError(
            "some of these requests were pruned just now, and nothing was written; allowed: the "
            "same command again"
        ) from None
