"""The inbox: records of the workers on their way to the learner, which moves them into the log.

A worker inserts a batch as one row of bytes: no place in the log, no lock that others wait for. The
learner deletes the rows in the transaction that appends their records, so each is in the inbox or
in the log, never in both and never in neither, whichever process is killed.
"""

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.rows import by_type, columns_of, from_values, names_of, values_of
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.store import log
from litellm_messplus.store.rows import features_from_bytes, features_to_bytes, replacing
from litellm_messplus.store.tables import deciders, inbox, learner

# Records as bytes: plain values in the order of the columns. Pickled, a record took ten times as
# long, since each of its enumerations and arrays went through Python.

KINDS = tuple(log.TABLE_OF)
"""The kinds of records; a record is encoded with its kind's place."""
FORMAT = 4
"""The version of `marshal`'s format, which every supported Python reads."""


def encode(records: Sequence[Record]) -> bytes:
    """Encode records; ``decode`` returns equal ones. Raises ValueError for a value of no column."""
    rows = [(KINDS.index(type(each)), _each_plain(values_of(each))) for each in records]
    return marshal.dumps(rows, FORMAT)


def decode(data: bytes) -> list[Record]:
    """Decode what ``encode`` returned. Raises ValueError, TypeError or EOFError for other bytes."""
    found: list[Record] = []
    for number, values in marshal.loads(data):
        kind = KINDS[number]
        for place, back in _converted(kind):
            if values[place] is not None:
                values[place] = back(values[place])
        found.append(from_values(kind, values))
    return found


@by_type
def _converted(record: Any) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return the places of times and of vectors among the values, and how they are decoded."""
    kinds = {each.name: each.base for each in columns_of(record)}
    back: dict[type, Callable[[Any], Any]] = {
        datetime: partial(datetime.fromtimestamp, tz=UTC),
        np.ndarray: features_from_bytes,
    }
    names = enumerate(names_of(record))
    return [(place, back[kinds[name]]) for place, name in names if kinds[name] in back]


def _each_plain(values: Iterable[Any]) -> list[Any]:
    """Return values as `marshal` takes them: of a built-in type itself, not of a class of it. It
    would write a number of numpy as bytes."""
    return [v if (kind := type(v)) in AS_IT_IS else PLAIN.get(kind, _plain)(v) for v in values]


def _plain_dict(values: Mapping[Any, Any]) -> dict[str, Any]:
    return dict(zip(map(str, values), _each_plain(values.values()), strict=True))


def _plain(value: Any) -> Any:
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return base(value)
    return value.item() if isinstance(value, np.generic) else value


AS_IT_IS = frozenset({str, int, float, bool, bytes, type(None)})
PLAIN: dict[type, Callable[[Any], Any]] = {
    datetime: datetime.timestamp,
    np.ndarray: features_to_bytes,
    dict: _plain_dict,
    list: _each_plain,
    tuple: _each_plain,
    **{
        each.base: str for kind in KINDS for each in columns_of(kind) if issubclass(each.base, Enum)
    },
}


# The tables.

SILENT = timedelta(hours=1)
"""The time after which a worker that sent nothing is forgotten: it has ended."""


class Batch(NamedTuple):
    """The ``number``-th batch of a worker, encoded; ``id`` is its row."""

    id: int
    worker: str
    number: int
    records: bytes


class DeposedError(MessplusError):
    """Another learner was elected: this one may not write any more."""


async def put(
    engine: AsyncEngine, worker: str, number: int, records: bytes, *, is_durable: bool
) -> None:
    """Insert a batch. Raises SQLAlchemyError if the database refuses, and DatabaseFileGoneError."""
    async with log.writing(engine, is_durable=is_durable) as connection:
        row = {"worker": worker, "number": number, "records": records}
        await connection.execute(insert(inbox), [row])


async def waiting(engine: AsyncEngine, most: int) -> list[Batch]:
    """Return the oldest batches, at most ``most``."""
    async with engine.connect() as connection:
        found = await connection.execute(select(inbox).order_by(inbox.c.id).limit(most))
        return [Batch(*row) for row in found]


async def take(
    connection: AsyncConnection, batches: Sequence[Batch], epoch: int, now: datetime
) -> None:
    """Delete the batches, and note how far each worker's are taken.

    Raises DeposedError unless the learner of that epoch is in office; it must not be committed.
    """
    mine = learner.c.epoch == epoch
    found = await connection.execute(update(learner).where(mine).values(epoch=epoch))
    if found.rowcount != 1:
        raise DeposedError("another learner was elected")
    if not batches:
        return
    await connection.execute(delete(inbox).where(inbox.c.id.in_([each.id for each in batches])))
    numbers = {each.worker: each.number for each in batches}
    rows = [
        {"worker": worker, "taken": number, "seen_at": now} for worker, number in numbers.items()
    ]
    await connection.execute(replacing(deciders, connection.dialect.name), rows)


async def check(connection: AsyncConnection, epoch: int) -> None:
    """Raise DeposedError unless the learner of that epoch is in office."""
    if (await connection.execute(select(learner.c.epoch))).scalar_one() != epoch:
        raise DeposedError("another learner was elected")


async def taken(engine: AsyncEngine, now: datetime) -> dict[str, int]:
    """Return the number of the newest batch taken of each worker, and forget the silent ones."""
    async with engine.begin() as connection:
        await connection.execute(delete(deciders).where(deciders.c.seen_at < now - SILENT))
        found = await connection.execute(select(deciders.c.worker, deciders.c.taken))
        return {row.worker: row.taken for row in found}


# The learner's office.


async def elect(engine: AsyncEngine, process: str, now: datetime) -> int:
    """Begin the next epoch: every learner of an earlier one is deposed. Returns the epoch."""
    async with engine.begin() as connection:
        elected = update(learner).values(
            epoch=learner.c.epoch + 1, process=process, since=now, published_at=now, state=None
        )
        found = await connection.execute(elected.returning(learner.c.epoch))
        return int(found.scalar_one())
