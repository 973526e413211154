"""Import of labels: a file is read, its calls are found, all good labels are written or none."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import LabelRecord
from litellm_messplus.routing.decision import label_weight
from litellm_messplus.runtime import parquet
from litellm_messplus.runtime.errors import RequestGoneError
from litellm_messplus.runtime.parquet import ParquetError
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store import log
from litellm_messplus.store.database import explained
from litellm_messplus.store.history import Target, known_labels, labels_on, targets
from litellm_messplus.store.reading import reading
from litellm_messplus.store.rows import storable
from litellm_messplus.upkeep.prune import writing
from litellm_messplus.upkeep.rows import (
    COLUMNS,
    LONGEST_SOURCE,
    Format,
    ImportingError,
    Item,
    Refused,
    RefusedError,
    Row,
    Why,
    read_row,
    recognise,
    score_name,
    shown,
)

# A file of labels on its way into the log, and its result.

SHOWN = 20
"""Most refused rows that are shown, the first; all are counted."""


@dataclass(slots=True)
class Import:
    """The import of a file of so many ``rows``: the rows ``read``, and their ``records`` in the
    log, in a dry run those that would be written; ``known`` are there already, or twice in the
    file; ``left_out`` are scores of other names."""

    file: str
    form: Format
    rows: int
    read: list[Row] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    records: list[LabelRecord] = field(default_factory=list)
    known: int = 0
    left_out: int = 0
    is_dry_run: bool = False

    @property
    def sources(self) -> list[str]:
        """The sources of the records."""
        return sorted({record.source for record in self.records})

    @property
    def is_in_vain(self) -> bool:
        """Whether rows were refused and no other row was useful."""
        return bool(self.refused) and not self.records and not self.known

    @contextmanager
    def taking(self, line: int) -> Iterator[None]:
        """Record why a row is refused, and go on with the next."""
        try:
            yield
        except RefusedError as error:
            self.refused.append(Refused(line, error.why, error.reason))

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return {
            "file": self.file,
            "format": self.form.value,
            "sources": self.sources,
            "rows": self.rows,
            "written": 0 if self.is_dry_run else len(self.records),
            "would_write": len(self.records) if self.is_dry_run else 0,
            "already_there": self.known,
            "left_out": self.left_out,
            "refused": len(self.refused),
            "refused_by_reason": self._by_reason(),
            "first_refused": [asdict(each) for each in self._first_refused()],
            "dry_run": self.is_dry_run,
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines for people."""
        yield f"{self.file} (format {self.form}): {self.rows} rows"
        did = "would be written" if self.is_dry_run else "are in the log"
        of = f" ({', '.join(self.sources)})" if self.records else ""
        yield f"  {len(self.records)} new labels {did}{of}"
        if self.known:
            yield f"  {self.known} were there already, or twice in the file: they count once"
        if self.left_out:
            yield f"  {self.left_out} scores of other names were left out"
        why = ", ".join(f"{why}: {count}" for why, count in self._by_reason().items())
        yield f"  {len(self.refused)} rows were refused" + (f" ({why})" if why else "")
        yield from (f"    line {each.line}: {each.reason}" for each in self._first_refused())
        if len(self.refused) > SHOWN:
            yield f"    and {len(self.refused) - SHOWN} more"
        if self.is_dry_run:
            yield "dry run: nothing was written"
        elif self.records:
            yield "a running proxy counts them in a second or two"

    def _first_refused(self) -> list[Refused]:
        return sorted(self.refused, key=lambda each: each.line)[:SHOWN]

    def _by_reason(self) -> dict[str, int]:
        return dict(Counter(each.why.value for each in self.refused))


# Files of labels: CSV, JSON Lines, JSON and Parquet, row by row.

MOST_ROWS = 1_000_000
"""Most rows of one file: all labels are written in one transaction."""
TABLES = (".csv", ".parquet", ".pq")
"""Suffixes of files whose rows all have the same columns."""
Numbered = tuple[int, Item | Refused]


def read_file(path: Path, form: Format = Format.AUTO, score: str | None = None) -> Import:
    """Read the rows of a file in the given format.

    Raises ImportingError for a file that is unreadable, has no rows or too many, or has Langfuse
    scores of several names of which ``score`` names none.
    """
    try:
        return _read(path, list(islice(_items(path), MOST_ROWS + 1)), form, score)
    except (OSError, UnicodeDecodeError, csv.Error, ParquetError) as error:
        raise _cannot_be_read(path, error) from None


def _read(path: Path, found: Sequence[Numbered], form: Format, score: str | None) -> Import:
    if not 0 < len(found) <= MOST_ROWS:
        given = f"more than {MOST_ROWS}" if found else "none"
        raise ImportingError(f"{path}: rows: given {given}; allowed: 1 to {MOST_ROWS} in a file")
    first = next((item for _, item in found if not isinstance(item, Refused)), None)
    if form is Format.AUTO:
        form = Format.ROWS if first is None else recognise(first)
    if score is not None and form is not Format.LANGFUSE:
        raise ImportingError(
            f"--score: given {score!r} for a file of the format {form}; allowed: for langfuse alone"
        )
    if first is not None and path.suffix.lower() in TABLES:
        _check_columns(path, first, form)
    imported, names = Import(str(path), form, len(found)), set[str]()
    for line, item in found:
        if isinstance(item, Refused):
            imported.refused.append(item)
        elif score is not None and score_name(item) != score:
            imported.left_out += 1
        else:
            names.add(score_name(item) if form is Format.LANGFUSE else "")
            with imported.taking(line):
                imported.read.append(read_row(line, item, form))
    if len(names) > 1:
        raise ImportingError(
            f"{path}: scores: given the names {', '.join(sorted(names)[:10])}; allowed: one, which "
            "--score NAME names: not every score means that a user was satisfied"
        )
    return imported


def _check_columns(path: Path, first: Item, form: Format) -> None:
    for allowed in COLUMNS[form].required:
        if not any(column in first for column in allowed):
            given = ", ".join(list(first)[:20])
            raise ImportingError(
                f"{path}: columns of the format {form}: given {given}; allowed: with "
                f"{' or '.join(allowed)} among them"
            )


def _items(path: Path) -> Iterator[Numbered]:
    kind = path.suffix.lower()
    if kind == ".csv":
        return _csv(path)
    if kind in (".jsonl", ".ndjson"):
        return _json_lines(path)
    if kind == ".json":
        return _json(path)
    if kind in TABLES:
        return enumerate(parquet.rows(path), start=1)
    raise ImportingError(
        f"{path}: given a file of an unknown kind; allowed: .csv, .jsonl, .json or .parquet"
    )


def _csv(path: Path) -> Iterator[Numbered]:
    """Read a CSV file. A row's line is its first: a comment may span several."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        line = 2
        for item in reader:
            yield line, {str(key): value for key, value in item.items() if key is not None}
            line = reader.line_num + 1


def _json_lines(path: Path) -> Iterator[Numbered]:
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield line, _object(line, text)


def _object(line: int, text: str) -> Item | Refused:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _no_object(line, text.strip())
    return found if isinstance(found, Mapping) else _no_object(line, found)


def _json(path: Path) -> Iterator[Numbered]:
    """Read a list of objects, or Langfuse's answer, which has it under `data`; counted from 1."""
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _cannot_be_read(path, error) from None
    if isinstance(found, Mapping) and isinstance(found.get("data"), list):
        found = found["data"]
    if not isinstance(found, list):
        raise ImportingError(f"{path}: given {shown(found)}; allowed: a list of objects")
    for number, item in enumerate(found, start=1):
        yield number, item if isinstance(item, Mapping) else _no_object(number, item)


def _no_object(line: int, given: object) -> Refused:
    return Refused(line, Why.UNREADABLE, f"given {shown(given)}; allowed: a JSON object")


def _cannot_be_read(path: Path, error: Exception) -> ImportingError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return ImportingError(f"{path}: cannot be read ({reason})")


# From rows to labels of calls: the call of each row, and its labels in the log.

PREFIX = "import:"
"""Prefix of the source of every imported label."""
MOST_LABELS = 200
"""Most labels of one call: with that many in the log it takes no more."""


async def import_labels(
    path: Path,
    database: str,
    biases: Mapping[str, float],
    *,
    form: Format = Format.AUTO,
    source: str | None = None,
    score: str | None = None,
    is_dry_run: bool = False,
) -> Import:
    """Write the labels of a file to the log of the database at a URL or a path, durably and in one
    transaction. Each has the weight of feedback under its zoo's response bias, by default 1.

    Raises MessplusError with the reason, before anything is written.
    """
    if source is not None and not 0 < len(source) <= LONGEST_SOURCE:
        raise ImportingError(
            f"--source: given {len(source)} characters; allowed: 1 to {LONGEST_SOURCE}"
        )
    found = read_file(path, form, score)
    found.is_dry_run = is_dry_run
    by_default = found.form.value if score is None else f"{found.form}.{score}"[:LONGEST_SOURCE]
    async with reading(database) as engine:  # this creates no database
        await _join(engine, found, source or by_default, biases)
    if found.records and not is_dry_run:
        await _write(database, found.records)
    return found


async def _join(
    engine: AsyncEngine, found: Import, source: str, biases: Mapping[str, float]
) -> None:
    """Find the labels of the rows. A row without a ``source`` takes the given one."""
    now, labels = datetime.now(UTC), dict[str, tuple[int, LabelRecord]]()
    async with engine.connect() as connection:
        ids = dict.fromkeys(storable(given) for row in found.read for given in row.ids)
        meant = await targets(connection, ids)
        for row in found.read:
            with found.taking(row.line):
                record = _record(row, _target(row, meant), row.source or source, now, biases)
                found.known += record.label_id in labels
                labels.setdefault(record.label_id, (row.line, record))
        known = await known_labels(connection, labels)
        counts = await labels_on(connection, {record.call_id for _, record in labels.values()})
    found.known += len(known)
    for line, record in (each for label_id, each in labels.items() if label_id not in known):
        with found.taking(line):
            count = counts.get(record.call_id, 0)
            if count >= MOST_LABELS:
                text = f"{record.call_id} has {count} labels"
                raise RefusedError(Why.FULL, f"{text}; allowed: at most {MOST_LABELS} on a call")
            counts[record.call_id] = count + 1
            found.records.append(record)
    found.records.sort(key=lambda record: record.created_at)


def _target(row: Row, meant: Mapping[str, set[Target]]) -> Target:
    """Return the call of the first known id of a row. Raises RefusedError if there is none, or
    several."""
    given = next((each for each in row.ids if storable(each) in meant), row.ids[0])
    found = meant.get(storable(given), set())
    if len(found) > 1:
        text = f"id: given {shown(given)}, which {len(found)} calls go by; allowed: that of one"
        raise RefusedError(Why.AMBIGUOUS, text)
    for target in found:
        return target
    raise RefusedError(Why.UNKNOWN, f"id: given {shown(given)}; allowed: one that the log knows")


def _record(
    row: Row, target: Target, source: str, now: datetime, biases: Mapping[str, float]
) -> LabelRecord:
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
        weight=label_weight(row.value, biases.get(target.zoo, 1.0)),
        comment=row.comment,
    )


async def _write(database: str, records: Sequence[LabelRecord]) -> None:
    async with writing(database) as engine:
        with explained(engine):
            try:
                await log.append(engine, records, is_durable=True)
            except (IntegrityError, RequestGoneError) as error:
                is_gone = isinstance(error, RequestGoneError)
                did = "a prune took requests of" if is_gone else "another import wrote some of"
                raise ImportingError(
                    f"{did} these labels just now, and nothing was written; allowed: the same "
                    "command again"
                ) from None
