"""`messplus labels import`: read the file, find the calls, write all good labels or none."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import RequestGoneError
from litellm_messplus.importing.readers import Read, read_file
from litellm_messplus.importing.rows import (
    LONGEST_SOURCE,
    Format,
    ImportingError,
    Refused,
    Row,
    Why,
    shown,
)
from litellm_messplus.proxy.influence import ResponseBias
from litellm_messplus.records import LabelRecord
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.load import load_settings, read_config
from litellm_messplus.settings.schema import AUDIT, MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, explained
from litellm_messplus.store.reading import reading
from litellm_messplus.store.rows import storable
from litellm_messplus.store.verdicts import Target, known_labels, labels_on, targets
from litellm_messplus.vocabulary import LabelKind

# What became of a file of labels.

SHOWN = 20
"""Refused rows that are shown, the first; all are counted."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. ``written`` labels are new in the log, or would be in a dry run;
    ``known`` are there already, or twice in the file; ``left_out`` are scores of other names."""

    file: str
    form: str
    sources: Sequence[str]
    rows: int
    written: int
    known: int
    left_out: int
    refused: Sequence[Refused]
    is_dry_run: bool

    @property
    def is_in_vain(self) -> bool:
        """Whether rows were refused and no other row was of use."""
        return bool(self.refused) and not self.written and not self.known

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return {
            "file": self.file,
            "format": self.form,
            "sources": list(self.sources),
            "rows": self.rows,
            "written": 0 if self.is_dry_run else self.written,
            "would_write": self.written if self.is_dry_run else 0,
            "already_there": self.known,
            "left_out": self.left_out,
            "refused": len(self.refused),
            "refused_by_reason": self._by_reason(),
            "first_refused": [
                {"line": each.line, "why": each.why.value, "reason": each.reason}
                for each in self._first_refused()
            ],
            "dry_run": self.is_dry_run,
        }

    def lines(self) -> list[str]:
        """Return the report as lines for people."""
        did = "would be written" if self.is_dry_run else "are in the log"
        told = [
            f"{self.file} (format {self.form}): {self.rows} rows",
            f"  {self.written} new labels {did}"
            + (f" ({', '.join(self.sources)})" if self.sources else ""),
        ]
        if self.known:
            told.append(f"  {self.known} were there already, or twice in the file: they count once")
        if self.left_out:
            told.append(f"  {self.left_out} scores of other names were left out")
        told.append(f"  {len(self.refused)} rows were refused{self._reasons()}")
        told += [f"    line {each.line}: {each.reason}" for each in self._first_refused()]
        if len(self.refused) > SHOWN:
            told.append(f"    and {len(self.refused) - SHOWN} more")
        if self.is_dry_run:
            told.append("dry run: nothing was written")
        elif self.written:
            told.append("a running proxy counts them in a second or two")
        return told

    def _first_refused(self) -> list[Refused]:
        return sorted(self.refused, key=lambda each: each.line)[:SHOWN]

    def _by_reason(self) -> dict[str, int]:
        return dict(Counter(each.why.value for each in self.refused))

    def _reasons(self) -> str:
        counts = [f"{why}: {count}" for why, count in self._by_reason().items()]
        return f" ({', '.join(counts)})" if counts else ""


# Rows to labels of calls: which call each row means, and what the log holds of it already.

PREFIX = "import:"
"""Of the source of every imported label."""
MOST_LABELS = 200
"""On one call: one with that many in the log takes no more."""
Weigh = Callable[[str, str, float], float]
"""What a label of a value weighs, by zoo and service level."""


@dataclass(slots=True)
class Joined:
    """The ``records`` are new, in the order of their times; ``known`` rows are in the log already,
    or twice in the file."""

    records: list[LabelRecord] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    known: int = 0


async def join(engine: AsyncEngine, rows: Iterable[Row], source: str, weigh: Weigh) -> Joined:
    """Find the labels that the rows are. A row that names no ``source`` takes the one given.

    Raises sqlalchemy.exc.SQLAlchemyError where the database does not answer.
    """
    rows = list(rows)
    joined, now = Joined(), datetime.now(UTC)
    async with engine.connect() as connection:
        ids = dict.fromkeys(storable(given) for row in rows for given in row.ids)
        meant = await targets(connection, ids)
        found: dict[str, tuple[Row, LabelRecord]] = {}
        for row, target in _located(rows, meant, joined):
            record = _record(row, target, row.source or source, now, weigh)
            joined.known += record.label_id in found
            found.setdefault(record.label_id, (row, record))
        known = await known_labels(connection, found)
        counts = await labels_on(connection, {record.call_id for _, record in found.values()})
    joined.known += len(known)
    new = [pair for label_id, pair in found.items() if label_id not in known]
    joined.records = sorted(_with_room(new, counts, joined), key=lambda record: record.created_at)
    return joined


def _located(
    rows: Iterable[Row], meant: Mapping[str, set[Target]], joined: Joined
) -> Iterator[tuple[Row, Target]]:
    for row in rows:
        given, found = next(
            ((given, meant[key]) for given in row.ids if (key := storable(given)) in meant),
            (row.ids[0], set[Target]()),
        )
        if len(found) == 1:
            yield row, next(iter(found))
        elif found:
            told = f"id: given {shown(given)}, which {len(found)} calls go by; allowed: that of one"
            joined.refused.append(Refused(row.line, Why.AMBIGUOUS, told))
        else:
            told = f"id: given {shown(given)}; allowed: one that the log knows"
            joined.refused.append(Refused(row.line, Why.UNKNOWN, told))


def _record(row: Row, target: Target, source: str, now: datetime, weigh: Weigh) -> LabelRecord:
    at = "" if row.at is None else row.at.isoformat()
    name = f"{PREFIX}{source}"
    identity = "\0".join((target.call_id, storable(name), repr(row.value), at))
    return LabelRecord(
        label_id=f"import-{blake2b(identity.encode(), digest_size=16).hexdigest()}",
        call_id=target.call_id,
        request_id=target.request_id,
        created_at=row.at or now,
        kind=LabelKind.FEEDBACK,
        source=name,
        value=row.value,
        weight=weigh(target.zoo, target.service_level, row.value),
        comment=row.comment,
    )


def _with_room(
    new: Iterable[tuple[Row, LabelRecord]], counts: dict[str, int], joined: Joined
) -> Iterator[LabelRecord]:
    for row, record in new:
        count = counts.get(record.call_id, 0)
        if count >= MOST_LABELS:
            told = f"{record.call_id} has {count} labels; allowed: at most {MOST_LABELS} on a call"
            joined.refused.append(Refused(row.line, Why.FULL, told))
            continue
        counts[record.call_id] = count + 1
        yield record


@dataclass(frozen=True, slots=True)
class Place:
    """The log that is written to: the database, and the settings where a configuration named it."""

    database: str
    settings: MessplusSettings | None = None


def find_place(config: Path | None, database: str | None) -> Place:
    """Find the database at a URL or a path, or the one that a configuration names.

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
) -> ImportReport:
    """Put the labels of a file into the log, durably and in one transaction.

    Raises MessplusError with the reason, before anything is written.
    """
    _check_source(source)
    read = read_file(path, form, score)
    joined = await _joined(read, place, source or _default_source(read, score))
    if joined.records and not is_dry_run:
        await _write(place.database, joined.records)
    return ImportReport(
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
    """Join the rows without writing: a database that is not there is not made."""
    async with reading(place.database) as engine:
        weigh: Weigh = _as_it_is
        if place.settings is not None:
            weigh = (await _bias(place.settings, engine)).feedback_weight
        return await join(engine, read.rows, source, weigh)


async def _bias(settings: MessplusSettings, engine: AsyncEngine) -> ResponseBias:
    """Estimate the response bias as a proxy with these settings would have it now."""
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
