"""Updating what is derived from the log, in the transaction that appends to it: the verdict of each
call, the outcome of each request, and the sums of both.

An outcome follows from all that is logged about a request, and a call or a label may change any of
it. So it is computed before and after, and the difference is written; a new request had none
before. Untouched rows are not read: they may leave the log, and their outcomes stay in the sums."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Insert, Table, case, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.logged import AT_ONCE, Logged, logged_requests
from litellm_messplus.learning.outcome import LoggedLabel, Outcome, Row, Verdicts, outcome
from litellm_messplus.learning.outcome import verdicts as verdicts_of
from litellm_messplus.learning.sums import HIGHEST, SUMS, Sums, add_change, of_grading, of_request
from litellm_messplus.rows import flat
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.store.rows import replacing, upserting
from litellm_messplus.store.tables import (
    calls,
    gradings,
    label_precedence,
    labels,
    log_head,
    outcomes,
    requests,
    verdicts,
)

ABOUT_REQUESTS = (calls, gradings, labels)
Batch = Mapping[Table, Sequence[Row]]
"""Rows to be written, by table."""
Rules = Mapping[str, Sequence[str]]
"""The kinds of labels that count, strongest first, by zoo; a zoo not listed has the default."""


class Projection(NamedTuple):
    """The verdicts, outcome and sums derived from all that is logged about one request."""

    outcome: Outcome
    verdicts: Verdicts
    sums: Sums


def projection(logged: Logged, precedence: Sequence[str]) -> Projection:
    """Compute what is derived from one request."""
    verdicts = verdicts_of(logged.labels, logged.calls, precedence) if logged.labels else {}
    found = outcome(*(logged.request, logged.calls, logged.labels, verdicts, logged.judging_cost))
    return Projection(found, verdicts, of_request(logged, found, verdicts))


@dataclass(slots=True)
class Change:
    """The change that a batch makes to the derived tables."""

    outcomes: list[Outcome] = field(default_factory=list)
    verdicts: list[LoggedLabel] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    sums: Sums = field(default_factory=dict)

    def add(self, before: Projection | None, after: Projection) -> None:
        """Add the difference between ``before``, None for a new request, and ``after``."""
        was = {} if before is None else before.verdicts
        if before is None or after.outcome != before.outcome:
            self.outcomes.append(after.outcome)
        self.verdicts += [now for call, now in after.verdicts.items() if was.get(call) != now]
        self.gone += [call for call in was if call not in after.verdicts]
        add_change(self.sums, {} if before is None else before.sums, after.sums)


async def project(
    connection: AsyncConnection, batch: Batch, remembered: Mapping[str, Logged]
) -> Mapping[str, Logged]:
    """Write what is derived from the rows, before the rows themselves and under the log's lock;
    returns all that is then logged about their requests."""
    known = {row["request_id"]: Logged(row) for row in batch.get(requests, ())}
    older = {
        row["request_id"]
        for table in ABOUT_REQUESTS
        for row in batch.get(table, ())
        if row["request_id"] not in known
    }
    before = {request_id: remembered[request_id] for request_id in older & remembered.keys()}
    if older := older - before.keys():
        before |= await logged_requests(connection, sorted(older))
    is_judged = batch.get(labels) or any(each.labels for each in before.values())
    rules = await rules_of(connection) if is_judged else {}
    was = {request_id: _projection(logged, rules) for request_id, logged in before.items()}
    known |= before
    for table in ABOUT_REQUESTS:
        for row in batch.get(table, ()):
            if row["request_id"] in known:  # else it is not counted
                known[row["request_id"]].add(table.name, row)
    change = Change()
    for request_id, logged in known.items():
        change.add(was.get(request_id), _projection(logged, rules))
    for grading in batch.get(gradings, ()):
        if (of := known.get(grading["request_id"])) is not None:
            add_change(change.sums, {}, of_grading(grading, of.request["zoo"]))
    await write(connection, change)
    return known


def _projection(logged: Logged, rules: Rules) -> Projection:
    return projection(logged, rules.get(logged.request["zoo"], PRECEDENCE))


# Writing it.


async def write(connection: AsyncConnection, change: Change) -> None:
    """Write a change to the tables."""
    dialect = connection.dialect.name
    if change.outcomes:
        rows = [flat(each) for each in change.outcomes]
        await connection.execute(replacing(outcomes, dialect), rows)
    if change.verdicts:
        rows = [flat(each) for each in change.verdicts]
        await connection.execute(replacing(verdicts, dialect), rows)
    if change.gone:
        await connection.execute(delete(verdicts).where(verdicts.c.call_id.in_(change.gone)))
    await add_sums(connection, change.sums)


async def add_sums(connection: AsyncConnection, changed: Sums) -> None:
    """Write differences to the tables of sums."""
    by_table: dict[Table, list[dict[str, Any]]] = defaultdict(list)
    for (table, key), figures in changed.items():
        if any(figures.values()):
            names = [column.name for column in table.primary_key.columns]
            # A nullable column that is unknown stays NULL.
            row = {**_NOTHING[table], **figures, **dict(zip(names, key, strict=True))}
            by_table[table].append(row)
    for table, rows in by_table.items():
        await connection.execute(_adding(table, connection.dialect.name), rows)


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
    """Insert a row, or add to the existing one."""
    return upserting(table, dialect, _merged)


def _merged(column: Column[Any], given: ColumnElement[Any]) -> ColumnElement[Any]:
    """Merge a figure: NULL is unknown, never zero, and leaves a known value unchanged."""
    if column.name == HIGHEST:
        return case((column > given, column), else_=func.coalesce(given, column))
    if column.nullable:
        return func.coalesce(column + given, column, given)
    return column + given


# The precedence of labels, stored at the start, so that every writer projects by one rule.
#
# Another rule gives other verdicts for the same labels: what is derived from the requests still in
# the log is computed anew.


async def rules_of(connection: AsyncConnection) -> dict[str, Sequence[str]]:
    """Read the kinds of labels that count by zoo; zoos without a stored rule are not included."""
    of = label_precedence.c
    found: dict[str, list[str]] = {}
    for zoo, kind, rank in await connection.execute(select(label_precedence).order_by(of.rank)):
        found.setdefault(zoo, []).extend([kind] if rank is not None else [])
    return dict(found)


async def save_rules(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every zoo in ``precedence``: its kinds that count, strongest first.

    Workers that start together take turns, as writers of the log do: on Postgres, none would see
    the new rows of another that replaces the same ones.
    """
    rows = [
        {"zoo": zoo, "kind": kind, "rank": kinds.index(kind) + 1 if kind in kinds else None}
        for zoo, kinds in precedence.items()
        for kind in LabelKind
    ]
    async with engine.begin() as connection:
        await connection.execute(log_head.update().values(position=log_head.c.position))
        before = await rules_of(connection)
        for zoo, kinds in precedence.items():
            await _follow(connection, zoo, before.get(zoo, PRECEDENCE), kinds)
        of_these = label_precedence.c.zoo.in_(list(precedence))
        await connection.execute(delete(label_precedence).where(of_these))
        await connection.execute(insert(label_precedence), rows)


async def _follow(
    connection: AsyncConnection, zoo: str, before: Sequence[str], after: Sequence[str]
) -> None:
    """Compute again what is derived for a zoo, by its new rule. The log, which may be long, is read
    in pages."""
    if list(before) == list(after):
        return
    logger.info("zoo %s: labels count by another rule, so its sums are made anew", zoo)
    async for ids in _labelled(connection, zoo):
        change = Change()
        for logged in (await logged_requests(connection, ids)).values():
            change.add(projection(logged, before), projection(logged, after))
        await write(connection, change)


async def _labelled(connection: AsyncConnection, zoo: str) -> AsyncIterator[Sequence[str]]:
    """Yield the ids of the zoo's requests that have labels, page by page."""
    has_label = select(labels.c.label_id).where(labels.c.request_id == requests.c.request_id)
    after = 0
    while True:
        query = (
            select(requests.c.request_id, requests.c.position)
            .where(requests.c.zoo == zoo, requests.c.position > after, has_label.exists())
            .order_by(requests.c.position)
            .limit(AT_ONCE)
        )
        rows: Sequence[Any] = (await connection.execute(query)).all()
        if not rows:
            return
        yield [row.request_id for row in rows]
        after = rows[-1].position
