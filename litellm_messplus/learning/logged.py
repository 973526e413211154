"""What the log says of the requests that a batch is about: read by their ids, along indexes.

In one statement, made once: to the writer of the log a statement costs more than what it finds.
What this process has just written about requests it remembers: most calls end soon after their
request was written, and by the same process.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Engine,
    Select,
    String,
    Subquery,
    Table,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.learning.outcome import LoggedLabel, Row
from litellm_messplus.rows import columns_of, rebuilt
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.store.tables import call_energy, calls, gradings, labels, requests

AT_ONCE = 500
"""Ids in one statement: a database takes only so many parameters."""


def in_parts(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids in as many parts as there must be statements."""
    remaining = iter(ids)
    while some := list(islice(remaining, AT_ONCE)):
        yield some


@dataclass(slots=True)
class Logged:
    """One request and all that the log has about it; of its labels, those that may say something.

    ``labels`` are in the order of the log, and of each source on a call the newest, and the newest
    that weighs, are among them. ``energy`` is the measured cost of a call by its id,
    ``judging_cost`` what its gradings cost in the zoo's unit, as far as it is known.
    """

    request: Row
    calls: list[Row] = field(default_factory=list)
    energy: dict[str, float | None] = field(default_factory=dict)
    labels: list[LoggedLabel] = field(default_factory=list)
    judging_cost: float = 0.0

    def add(self, table: str, row: Row) -> None:
        """Add a row of that table about the request, the next in the order of the log."""
        match table:
            case calls.name:
                self.calls.append(row)
            case call_energy.name:
                self.energy[row["call_id"]] = row["cost"]
            case gradings.name:
                self.judging_cost += row["zoo_cost"] or 0.0
            case labels.name:
                self.labels.append(rebuilt(LoggedLabel, row))


# Reading them.

_REQUEST = (
    *("request_id", "position", "created_at", "zoo", "service_level", "alpha", "arm", "largest"),
    *("is_exploration", "estimated_cost_largest", "encode_seconds", "decision_seconds"),
    *("encode_joules", "queue", "counted_with"),
)
_CALL = (
    *("request_id", "call_id", "role", "status", "failure", "candidate", "model", "cost"),
    *("seconds", "prompt_tokens", "completion_tokens", "is_cache_hit"),
)
_ENERGY = ("request_id", "call_id", "cost")
_LABEL = tuple(each.name for each in columns_of(LoggedLabel))
_GRADING = ("request_id", "zoo_cost")
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_COLUMNS: Mapping[str, Column[Any]] = {
    column: table.c[column]
    for table, names in (
        *((requests, _REQUEST), (calls, _CALL), (labels, _LABEL)),
        (gradings, _GRADING),
    )
    for column in names
}
"""Every column that is read, once; a part of the statement has NULL in those of the others."""


async def logged_requests(
    connection: AsyncConnection, request_ids: Collection[str]
) -> dict[str, Logged]:
    """Read the requests that the log has under these ids, with all that is logged about them."""
    found: dict[str, Logged] = {}
    for some in in_parts(request_ids):
        await _read(connection, some, found)
    return found


async def _read(
    connection: AsyncConnection, ids: Collection[str], found: dict[str, Logged]
) -> None:
    names = ("part", *_COLUMNS)
    result = await connection.execute(_EVERYTHING, {"ids": ids})
    rows = [dict(zip(names, row, strict=True)) for row in result]
    found |= {row["request_id"]: Logged(row) for row in rows if row["part"] == requests.name}
    for row in sorted(rows, key=lambda row: row["position"] or 0):  # which labels have
        if row["request_id"] in found:  # else it counts nowhere
            found[row["request_id"]].add(row["part"], row)


def _part(table: Table, names: Collection[str]) -> Select[Any]:
    """Query the rows of one table that belong to the requests."""
    of_others = (
        (table.c[name] if name in names else cast(null(), column.type)).label(name)
        for name, column in _COLUMNS.items()
    )
    part = literal_column(f"'{table.name}'", String).label("part")
    return select(part, *of_others).where(table.c.request_id.in_(_IDS))


def newest_labels(where: ColumnElement[bool]) -> Subquery:
    """Query, of each source on a call, the positions of its ``newest`` label and of the newest that
    ``weighs``: all that a rule may ask of, however many labels there are."""
    weighing = labels.c.position
    return (
        select(
            func.max(labels.c.position).label("newest"),
            func.max(weighing).filter(labels.c.weight > 0.0).label("weighs"),
        )
        .where(where)
        .group_by(labels.c.call_id, labels.c.source)
        .subquery()
    )


def _standing() -> Select[Any]:
    newest = newest_labels(labels.c.request_id.in_(_IDS))
    is_standing = labels.c.position.in_((newest.c.newest, newest.c.weighs))
    return _part(labels, _LABEL).join(newest, is_standing)


_EVERYTHING = union_all(
    *(_part(requests, _REQUEST), _part(calls, _CALL), _part(call_energy, _ENERGY)),
    *(_part(gradings, _GRADING), _standing()),
)


# What this process has just written, so that the next batch need not read it.
#
# It may be relied on only while nobody else writes: the positions tell, for another writer's
# records would lie between.

Numbers = dict[tuple[str, str], int]
"""By zoo and service level, the highest number of a request. Asked for with every commit, they cost
half a millisecond of it."""
MOST = 4096
"""Requests, the newest; of an older one the log is asked."""
MOST_LABELS = 16
"""On one request; of one with more the log is asked, which gives only those that matter."""


class Remembered:
    """The end of the log as this process knows it: all about some requests, and the highest numbers
    of some service levels."""

    def __init__(self, most: int = MOST) -> None:
        self._position: int | None = None
        self._requests: Bounded[str, Logged] = Bounded(most)
        self._numbers: Numbers = {}

    def __len__(self) -> int:
        return len(self._requests)

    def take(self, position: int) -> tuple[Mapping[str, Logged], Numbers]:
        """Take what is known where the log ended at ``position``. The next writer changes it, and
        only what is committed is given back: else the log is asked anew."""
        if position != self._position:
            self._requests.clear()
            self._numbers = {}
        self._position = None
        return self._requests, dict(self._numbers)

    def keep(self, known: Mapping[str, Logged], numbers: Numbers, position: int) -> None:
        """Keep the requests of a batch, and the numbers, as they are since its commit at
        ``position``."""
        for request_id, logged in known.items():
            if len(logged.labels) <= MOST_LABELS:
                self._requests[request_id] = logged
            else:
                self._requests.pop(request_id, None)
        self._numbers, self._position = numbers, position


_OF_DATABASES: WeakKeyDictionary[Engine, Remembered] = WeakKeyDictionary()


def remembered(database: Engine) -> Remembered:
    """Return what this process remembers of a database that it has open."""
    return _OF_DATABASES.setdefault(database, Remembered())
