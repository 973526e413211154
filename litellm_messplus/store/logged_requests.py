"""What the log says of the requests that a batch is about: read by their ids, along indexes.

In one statement, made once: to the writer of the log a statement costs more than what it finds.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    Select,
    String,
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

from litellm_messplus.store.contribution import DEFAULT_RANKS, Logged, Ranks
from litellm_messplus.store.side_tables import label_precedence
from litellm_messplus.store.tables import call_energy, calls, labels, requests

AT_ONCE = 500
"""Ids in one statement: a database takes only so many parameters."""

_REQUEST = (
    *("request_id", "created_at", "zoo", "service_level", "alpha", "largest", "is_exploration"),
    *("estimated_cost_largest", "encode_seconds", "decision_seconds", "encode_joules"),
    *("queue", "counted_with"),
)
_CALL = (
    *("request_id", "call_id", "role", "status", "candidate", "model", "cost", "seconds"),
    *("prompt_tokens", "completion_tokens", "is_cache_hit"),
)
_LABEL = ("request_id", "call_id", "position", "kind", "source", "value", "weight", "probability")
_ENERGY = ("request_id", "call_id", "cost")
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_COLUMNS: Mapping[str, Column[Any]] = {
    column: table.c[column]
    for table, names in ((requests, _REQUEST), (calls, _CALL), (labels, _LABEL))
    for column in names
}
"""Every column that is read, once; a part of the statement has NULL in those of the others."""


async def logged_requests(
    connection: AsyncConnection, request_ids: Collection[str]
) -> dict[str, Logged]:
    """Read the requests that the log has under these ids, with all that is logged about them."""
    found: dict[str, Logged] = {}
    ids = list(request_ids)
    for start in range(0, len(ids), AT_ONCE):
        await _read(connection, ids[start : start + AT_ONCE], found)
    return found


async def ranks_of(connection: AsyncConnection) -> dict[str, Ranks]:
    """Read, by zoo, how its kinds of labels rank; a zoo without a rule of its own is not there."""
    given: dict[str, dict[str, int]] = {}
    for zoo, kind, rank in await connection.execute(_RULES):
        ranks = given.setdefault(zoo, dict(DEFAULT_RANKS))
        if rank is None:
            ranks.pop(kind, None)
        else:
            ranks[kind] = rank
    return dict(given)


async def _read(
    connection: AsyncConnection, ids: Collection[str], found: dict[str, Logged]
) -> None:
    names = ("part", *_COLUMNS)
    result = await connection.execute(_EVERYTHING, {"ids": ids})
    rows = [dict(zip(names, row, strict=True)) for row in result]
    found |= {row["request_id"]: Logged(row) for row in rows if row["part"] == requests.name}
    said = []
    for row in rows:
        logged = found.get(row["request_id"])
        if logged is None:  # of no request: it counts nowhere
            continue
        match row["part"]:
            case calls.name:
                logged.calls.append(row)
            case call_energy.name:
                logged.energy[row["call_id"]] = row["cost"]
            case labels.name:
                said.append((row["position"], logged, row))
    for _, logged, row in sorted(said, key=lambda each: each[0]):
        logged.labels.append(row)


def _part(table: Table, names: Collection[str]) -> Select[Any]:
    """Query the rows of one table that belong to the requests."""
    of_others = (
        (table.c[name] if name in names else cast(null(), column.type)).label(name)
        for name, column in _COLUMNS.items()
    )
    part = literal_column(f"'{table.name}'", String).label("part")
    return select(part, *of_others).where(table.c.request_id.in_(_IDS))


def _standing() -> Select[Any]:
    """Query, of each source on a call, the newest label, and the newest that weighs."""
    newest = (
        select(
            func.max(labels.c.position).label("newest"),
            func.max(labels.c.position).filter(labels.c.weight > 0.0).label("weighs"),
        )
        .where(labels.c.request_id.in_(_IDS))
        .group_by(labels.c.call_id, labels.c.source)
        .subquery()
    )
    is_standing = labels.c.position.in_((newest.c.newest, newest.c.weighs))
    return _part(labels, _LABEL).join(newest, is_standing)


_EVERYTHING = union_all(
    _part(requests, _REQUEST), _part(calls, _CALL), _part(call_energy, _ENERGY), _standing()
)
_RULES = select(label_precedence)
