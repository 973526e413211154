"""Reading all that is logged about the requests of a batch, by their ids, along indexes.

One statement, built once, because for the writer of the log the statement costs more than its rows.
Requests just written by this process are cached: most calls end soon after their request was
written, and in the same process.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
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
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.store.tables import calls, gradings, labels, requests

AT_ONCE = 500
"""Ids in one statement: databases limit the number of parameters."""


def in_parts(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids in parts of one statement each."""
    remaining = iter(ids)
    while some := list(islice(remaining, AT_ONCE)):
        yield some


@dataclass(slots=True)
class Logged:
    """One request and all that is logged about it, of its labels only those that may matter.

    ``labels`` are in log order, and include, of each source on a call, the newest and the newest
    with a weight. ``judging_cost`` is the known cost of its gradings, in the zoo's unit.
    """

    request: Row
    calls: list[Row] = field(default_factory=list)
    labels: list[LoggedLabel] = field(default_factory=list)
    judging_cost: float = 0.0

    def add(self, table: str, row: Row) -> None:
        """Add a row of that table about the request, the next in log order."""
        match table:
            case calls.name:
                self.calls.append(row)
            case gradings.name:
                self.judging_cost += row["zoo_cost"] or 0.0
            case labels.name:
                self.labels.append(LoggedLabel(*(row[name] for name in _OF_LABEL)))


# Reading them.

_REQUEST = (
    *("request_id", "position", "created_at", "zoo", "service_level", "alpha", "arm", "largest"),
    *("is_exploration", "estimated_cost_largest", "encode_seconds", "decision_seconds"),
    "queue",
)
_CALL = (
    *("request_id", "call_id", "role", "status", "failure", "candidate", "model", "cost"),
    *("seconds", "prompt_tokens", "completion_tokens", "is_cache_hit", "served_not_chosen"),
    "cost_largest",
)
_OF_LABEL = tuple(each.name for each in fields(LoggedLabel))
_LABEL = ("request_id", "position", *_OF_LABEL)
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
"""Every column read, once; each part of the statement has NULL in the columns of the others."""


async def logged_requests(
    connection: AsyncConnection, request_ids: Collection[str]
) -> dict[str, Logged]:
    """Read the logged requests with these ids, and all that is logged about them."""
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
    for row in sorted(rows, key=lambda row: row["position"] or 0):  # labels have one
        if row["request_id"] in found:  # else it is not counted
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
    """Query, for each source on a call, the positions of its ``newest`` label and of the newest
    with a weight (``weighs``): all that a rule may need, however many labels there are."""
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
    *(_part(requests, _REQUEST), _part(calls, _CALL)),
    *(_part(gradings, _GRADING), _standing()),
)


# A cache of what this process has just written, so that the next batch need not read it.
#
# It is valid only while no other process writes, which the positions show: another writer's records
# would lie between.

Numbers = dict[tuple[str, str], int]
"""The highest number of a request, by zoo and service level. Queried with every commit, they would
add half a millisecond to it."""
MOST = 4096
"""The number of newest requests cached; older ones are read from the log."""
MOST_LABELS = 16
"""The most labels on a cached request; one with more is read from the log, without most of them."""


class Remembered:
    """The cached end of the log: all about some requests, and the highest numbers of some service
    levels."""

    def __init__(self, most: int = MOST) -> None:
        self._position: int | None = None
        self._requests: Bounded[str, Logged] = Bounded(most)
        self._numbers: Numbers = {}

    def take(self, position: int) -> tuple[Mapping[str, Logged], Numbers]:
        """Take what is known if the log still ends at ``position``. The caller changes it, and
        gives it back to ``keep`` after the commit; otherwise the log is read anew."""
        if position != self._position:
            self._requests.clear()
            self._numbers = {}
        self._position = None
        return self._requests, dict(self._numbers)

    def keep(self, known: Mapping[str, Logged], numbers: Numbers, position: int) -> None:
        """Cache the requests of a batch, and the numbers, as of its commit at ``position``."""
        for request_id, logged in known.items():
            if len(logged.labels) <= MOST_LABELS:
                self._requests[request_id] = logged
            else:
                self._requests.pop(request_id, None)
        self._numbers, self._position = numbers, position


_OF_DATABASES: WeakKeyDictionary[Engine, Remembered] = WeakKeyDictionary()


def remembered(database: Engine) -> Remembered:
    """Return this process's cache for an open database."""
    return _OF_DATABASES.setdefault(database, Remembered())
