"""Sums by hour of requests, calls and labels, which keep what is pruned.

The tables of sums hold the requests up to `log_head.summed`, which the learner moves on every few
minutes by one statement a table; later requests are read as they are. One that changes after it
was summed is subtracted before and added again after, in the transaction that changes it. So at
every commit, sums and later requests together are what all requests come to.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    Integer,
    Select,
    String,
    Subquery,
    Table,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.tally import NONE, ONE, amounts_of
from litellm_messplus.runtime.vocabulary import CallStatus, GradingStatus
from litellm_messplus.store import tables
from litellm_messplus.store.rows import Position, upserting
from litellm_messplus.store.tables import (
    JUDGING,
    calls,
    gradings,
    labels,
    log_head,
    outcomes,
    served_call,
)

# What requests later than ``since``, in the log, add to each table: rows of its columns. ``which``
# are further conditions on them.

_PROMISE = tuple(outcomes.c[name] for name in ("day", "zoo", "service_level"))


def _of_requests(since: Any, *which: ColumnElement[bool]) -> Any:
    of = outcomes.c
    amounts = select(*_PROMISE, of.hour, of.alpha, *amounts_of(outcomes))
    return amounts.where(of.position > since, *which)


def _of_calls(since: Any, *which: ColumnElement[bool]) -> Any:
    of, judged = calls.c, gradings.c
    nobody, judging = literal_column("''", String), literal_column(f"'{JUDGING}'", String)
    names = func.coalesce(of.candidate, nobody), func.coalesce(of.model, nobody), of.role
    both = (
        _called(calls, names, of.status != CallStatus.SUCCESS),
        _called(gradings, (nobody, judged.judge, judging), judged.status != GradingStatus.GRADED),
    )
    return union_all(*(each.where(*_later(since, begin), *which) for each, begin in both))


def _called(
    table: Table, names: tuple[Any, Any, Any], is_failure: ColumnElement[bool]
) -> tuple[Select[Any], Any]:
    """Query the calls in a table, by candidate, model and role; with the position of each."""
    of, (candidate, model, role) = table.c, names
    query = select(
        *(*_PROMISE, outcomes.c.hour),
        *(candidate.label("candidate"), model.label("model"), role.label("role")),
        ONE.label("calls"),
        _count(is_failure).label("failures"),
        func.coalesce(of.cost, literal_column("0.0")).label("cost"),
        _count(of.cost.is_(None)).label("calls_without_cost"),
        func.coalesce(of.prompt_tokens, NONE).label("prompt_tokens"),
        func.coalesce(of.completion_tokens, NONE).label("completion_tokens"),
    ).join_from(table, outcomes, outcomes.c.request_id == of.request_id)
    return query, of.position


def _of_labels(since: Any, *which: ColumnElement[bool]) -> Any:
    of, newer = labels.c, labels.alias("newer")
    of_same = (newer.c.call_id == of.call_id, newer.c.source == of.source)
    is_newest = of.position == select(func.max(newer.c.position)).where(*of_same).scalar_subquery()
    return (
        select(
            *(*_PROMISE, of.kind, of.source),
            _count(is_newest).label("labelled"),
            case((is_newest, of.value), else_=NONE).label("satisfaction"),
            _count(of.counts).label("counting"),
        )
        .join_from(labels, outcomes, of.call_id == served_call(outcomes))
        .where(*_later(since, of.position), *which)
    )


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, ONE), else_=NONE)


def _later(since: Any, position: ColumnElement[int]) -> Iterable[ColumnElement[bool]]:
    """Choose what is about later requests: the last condition follows from the others, and lets
    the database look it up by position."""
    own = outcomes.c.position
    return own > since, position > own, position > since


_AMOUNTS: Mapping[Table, Callable[..., Any]] = {
    tables.hours: _of_requests,
    tables.call_hours: _of_calls,
    tables.label_days: _of_labels,
}

# Reading them.


def _every(table: Table) -> Subquery:
    """Query the rows of a table of sums, and the amounts of what is later than they are."""
    summed = select(log_head.c.summed).scalar_subquery()
    names = [each.name for each in table.columns]
    later = _AMOUNTS[table](summed).subquery()
    rows = select(*(later.c[name] for name in names))
    return union_all(select(table), rows).subquery(f"every_{table.name}")


REQUESTS, CALLS, LABELS = map(_every, _AMOUNTS)
"""Sums of all requests, calls (and gradings) and labels: the columns of `hours`, `call_hours` and
`label_days`, in more than one row of the same key."""

# Writing them.

AT_ONCE = 20_000
"""Positions of the log in one transaction, for which other writers wait."""


async def add(connection: AsyncConnection, request_ids: Collection[str], sign: int) -> None:
    """Add the requests to the sums as they are now, or subtract them where ``sign`` is -1."""
    if request_ids:
        await _add(connection, {"ids": list(request_ids), "sign": sign}, "ids")


async def settle(engine: AsyncEngine, upto: int) -> None:
    """Add the requests up to this position of the log to the sums, and move `log_head.summed`
    there. Raises SQLAlchemyError."""
    lock = update(log_head).values(position=log_head.c.position).returning(log_head.c.summed)
    while True:
        async with engine.begin() as connection:
            after: int = (await connection.execute(lock)).scalar_one()
            if after >= upto:
                return
            summed = min(after + AT_ONCE, upto)
            await _add(connection, {"after": after, "upto": summed, "sign": 1}, "range")
            await connection.execute(update(log_head).values(summed=summed))


async def _add(connection: AsyncConnection, given: Mapping[str, Any], which: str) -> None:
    for table in _AMOUNTS:
        await connection.execute(_adding(table, which, connection.dialect.name), given)


@cache
def _adding(table: Table, which: str, dialect: str) -> Insert:
    """Build the statement that sums amounts up by key, and adds them to the table."""
    if which == "ids":
        rows = _AMOUNTS[table](NONE, outcomes.c.request_id.in_(bindparam("ids", expanding=True)))
    else:
        after, upto = (bindparam(name, type_=Position) for name in ("after", "upto"))
        rows = _AMOUNTS[table](after, outcomes.c.position <= upto)
    rows = rows.subquery()
    keys = [rows.c[each.name] for each in table.primary_key.columns]
    names = [each.name for each in table.columns if not each.primary_key]
    sign: BindParameter[int] = bindparam("sign", type_=Integer)
    query = select(*keys, *(sign * func.sum(rows.c[name]) for name in names)).group_by(*keys)
    added = upserting(table, dialect, lambda column, given: column + given)
    return added.from_select([*(each.name for each in keys), *names], query)
