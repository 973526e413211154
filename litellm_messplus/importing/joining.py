"""Rows to labels of calls: which call each row means, and what the log holds of it already."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.importing.rows import Refused, Row, Why, shown
from litellm_messplus.label_kind import LabelKind
from litellm_messplus.records import LabelRecord
from litellm_messplus.store.label_targets import Target, known_labels, labels_on, targets
from litellm_messplus.store.rows import storable

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
    """The labels that the rows are. A row that names no ``source`` is of the one given.

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
