"""Keeping the tables of sums: what a batch changes is added in the transaction that writes it.

What a request adds follows from all that is logged about it, and a call or a label may change any
of it. So it is added up as it was and as it is, and the difference is written. A new request
was nothing before. The sums never ask for rows that are not touched: rows may leave the log, and
what they came to stays."""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Column, ColumnElement, Engine, Insert, Table, case, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.contribution import (
    DEFAULT_RANKS,
    Figures,
    Logged,
    Ranks,
    Row,
    Sums,
    contribution,
    of_grading,
)
from litellm_messplus.store.logged_requests import logged_requests, ranks_of
from litellm_messplus.store.sum_tables import (
    call_sums,
    grading_sums,
    hourly_call_sums,
    hourly_request_sums,
    label_sums,
    request_sums,
)
from litellm_messplus.store.tables import call_energy, calls, gradings, labels, requests

# What this process has just written about requests, so that the next batch need not read it.
#
# Most calls end soon after their request was written, and by the same process. It may be relied on
# only while nobody else writes: the positions tell, for another writer's records would lie between.

MOST = 4096
"""Requests, the newest; of an older one the log is asked."""
MOST_LABELS = 16
"""On one request; of one with more the log is asked, which gives only those that matter."""


class Remembered:
    """All that is logged about some requests, up to a position in the log."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._position: int | None = None
        self._requests: OrderedDict[str, Logged] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    def take(self, position: int) -> Mapping[str, Logged]:
        """Take what is known where the log ended at ``position``. The next writer changes it, and
        only what is committed is given back: else the log is asked anew."""
        if position != self._position:
            self._requests.clear()
        self._position = None
        return self._requests

    def keep(self, known: Mapping[str, Logged], position: int) -> None:
        """Keep the requests of a batch, as they are since its commit at ``position``."""
        for request_id, logged in known.items():
            self._requests.pop(request_id, None)
            if len(logged.labels) <= MOST_LABELS:
                self._requests[request_id] = logged
        while len(self._requests) > self._most:
            self._requests.popitem(last=False)
        self._position = position


_OF_DATABASES: WeakKeyDictionary[Engine, Remembered] = WeakKeyDictionary()


def remembered(database: Engine) -> Remembered:
    """Return what this process remembers of a database that it has open."""
    return _OF_DATABASES.setdefault(database, Remembered())


SUMS = (
    *(request_sums, call_sums, label_sums, grading_sums),
    *(hourly_request_sums, hourly_call_sums),
)
HIGHEST = "newest_graded"
"""The one column that is no sum: the higher of two stays."""
_NO_FIGURES: Figures = {}

Batch = Mapping[Table, Sequence[Row]]
"""Rows about to be written, by their table."""


async def difference(
    connection: AsyncConnection, batch: Batch, remembered: Mapping[str, Logged]
) -> tuple[Sums, Mapping[str, Logged]]:
    """Compute what the rows will change in the sums, and all that is then logged about their
    requests; to be asked before they are written, while no other writer can come between."""
    known = {row["request_id"]: Logged(row) for row in batch.get(requests, ())}
    older = {
        row["request_id"]
        for table in (calls, call_energy, labels, gradings)
        for row in batch.get(table, ())
        if row["request_id"] not in known
    }
    before = {request_id: remembered[request_id] for request_id in older & remembered.keys()}
    if older := older - before.keys():
        before |= await logged_requests(connection, sorted(older))
    is_judged = batch.get(labels) or any(each.labels for each in before.values())
    ranks = await ranks_of(connection) if is_judged else {}
    was = {request_id: _contribution(logged, ranks) for request_id, logged in before.items()}
    known |= before
    _extend(known, batch)
    changed: Sums = {}
    for request_id, logged in known.items():
        add_change(changed, was.get(request_id, {}), _contribution(logged, ranks))
    for grading in batch.get(gradings, ()):
        if (of := known.get(grading["request_id"])) is not None:
            _add_grading(changed, of_grading(grading, of.request["zoo"]))
    return changed, known


def _contribution(logged: Logged, ranks: Mapping[str, Ranks]) -> Sums:
    return contribution(logged, ranks.get(logged.request["zoo"], DEFAULT_RANKS))


def _extend(known: Mapping[str, Logged], batch: Batch) -> None:
    """Extend what is known by the rows of the batch. What has no request counts nowhere, in the
    views neither."""
    for call in batch.get(calls, ()):
        if (of := known.get(call["request_id"])) is not None:
            of.calls.append(call)
    for row in batch.get(call_energy, ()):
        if (of := known.get(row["request_id"])) is not None:
            of.energy[row["call_id"]] = row["cost"]
    for label in batch.get(labels, ()):
        if (of := known.get(label["request_id"])) is not None:
            of.labels.append(label)


async def add(connection: AsyncConnection, changed: Sums) -> None:
    """Write differences to the tables of sums."""
    by_table: dict[Table, list[dict[str, Any]]] = defaultdict(list)
    for (table, key), figures in changed.items():
        if any(figures.values()):
            by_table[table].append(_row(table, key, figures))
    for table, rows in by_table.items():
        await connection.execute(_adding(table, connection.dialect.name), rows)


def add_change(changed: Sums, before: Sums, after: Sums) -> None:
    """Add to ``changed`` what makes ``after`` of ``before``. What is the same leaves no trace, not
    even a rounding's."""
    for where, now in after.items():
        was = before.get(where, _NO_FIGURES)
        if now != was:
            _add_difference(changed.setdefault(where, {}), was, now)
    for where, was in before.items():
        if where not in after:
            _add_difference(changed.setdefault(where, {}), was, _NO_FIGURES)


def _add_difference(found: Figures, was: Figures, now: Figures) -> None:
    """Add a difference, in the writer's way, so each figure is looked at once: few become less or
    go."""
    for name, figure in now.items():
        old = was.get(name)
        if old is None:
            found[name] = found.get(name, 0) + figure
        elif figure != old:
            found[name] = found.get(name, 0) + (figure - old)
    for name, old in was.items():
        if name not in now:
            found[name] = found.get(name, 0) - old


def _add_grading(changed: Sums, sums: Sums) -> None:
    for where, figures in sums.items():
        found = changed.setdefault(where, {})
        highest = max(found.pop(HIGHEST, 0), figures.pop(HIGHEST, 0))
        _add_difference(found, _NO_FIGURES, figures)
        if highest:
            found[HIGHEST] = highest


def _row(table: Table, key: tuple[Any, ...], figures: Figures) -> dict[str, Any]:
    """Write the difference as a row: of columns that may be NULL, one that is unknown stays so."""
    names = [column.name for column in table.primary_key.columns]
    return {**_NOTHING[table], **figures, **dict(zip(names, key, strict=True))}


_NOTHING = {
    table: {
        column.name: None if column.nullable else 0
        for column in table.columns
        if not column.primary_key
    }
    for table in SUMS
}


@cache
def _adding(table: Table, dialect: str) -> Insert:
    """Insert a row, or add to the one that is there."""
    inserted = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table)
    return inserted.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={
            column.name: _merged(column, inserted.excluded[column.name])
            for column in table.columns
            if not column.primary_key
        },
    )


def _merged(column: Column[Any], given: ColumnElement[Any]) -> ColumnElement[Any]:
    """Merge a figure: NULL is unknown, never zero, and leaves what is known as it is."""
    if column.name == HIGHEST:
        return case((column > given, column), else_=func.coalesce(given, column))
    if column.nullable:
        return func.coalesce(column + given, column, given)
    return column + given
