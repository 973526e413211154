"""Requests and labels per key over the last day. The same queries run on SQLite and Postgres."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, case, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.tally import taken
from litellm_messplus.labels.key_pull import FAULT_FINDERS, KeyActivity, LevelActivity, Tally
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store.tables import labels, log_head, requests, served_call

SPAN = timedelta(days=1)
MOST_KEYS = 200
"""The most keys of a service level, those with most labels: the others have little influence."""
MOST_RECORDS = 100_000
"""The number of newest records, of all zoos, searched for a key's activity: less than a day of a
busy proxy."""


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """One of the keys with the most labels, except those of judges, in the last day at one service
    level."""

    zoo: str
    service_level: str
    key_hash: str | None
    requests: int
    verdicts: int
    counting: int
    unsatisfied: float | None
    held: int


async def activity(engine: AsyncEngine, zoo: str, service_level: str) -> LevelActivity:
    """Read the activity of the last day. Raises SQLAlchemyError if the database does not answer."""
    in_level = and_(
        _plain(requests.c.zoo) == zoo, _plain(requests.c.service_level) == service_level
    )
    async with engine.connect() as connection:
        since = await _since(connection)
        found = await connection.execute(_labels_of_keys(since).where(in_level).limit(MOST_KEYS))
        by_key = {row.key_hash: row for row in found}
        of_all = select(func.count()).where(requests.c.created_at >= since, in_level)
        total = (await connection.execute(of_all)).scalar_one()
        judged = (await connection.execute(_judges(since).where(in_level))).one()
        counts = await _requests_of(connection, since, list(by_key))
    return LevelActivity(
        requests=total,
        judges=Tally(*judged),
        keys={
            key: KeyActivity(
                requests=counts.get((zoo, service_level, key), 0),
                labels=Tally(row.weight, row.satisfied),
                faults=row.faults,
            )
            for key, row in by_key.items()
        },
    )


async def heaviest_keys(connection: AsyncConnection, most: int) -> list[KeyStatus]:
    """Read the keys with the most labels in the last day, counting or not."""
    since = await _since(connection)
    rows = (await connection.execute(_labels_of_keys(since).limit(most))).all()
    counts = await _requests_of(connection, since, [row.key_hash for row in rows])
    return [
        taken(
            KeyStatus,
            row,
            requests=counts.get((row.zoo, row.service_level, row.key_hash), 0),
            unsatisfied=1.0 - row.total / row.counting if row.counting else None,
        )
        for row in rows
    ]


async def _since(connection: AsyncConnection) -> datetime:
    """Find the time from which the log is read."""
    day = datetime.now(UTC) - SPAN
    newest = select(log_head.c.position - MOST_RECORDS).scalar_subquery()
    first = (
        select(requests.c.created_at)
        .where(requests.c.position > newest)
        .order_by(requests.c.position)
        .limit(1)
    )
    found = (await connection.execute(first)).scalar_one_or_none()
    return day if found is None else max(day, found)


async def _requests_of(
    connection: AsyncConnection, since: datetime, keys: list[str | None]
) -> dict[tuple[str, str, str | None], int]:
    """Count the requests of each of these keys, by zoo and service level."""
    each = (_plain(requests.c.zoo), _plain(requests.c.service_level), requests.c.key_hash)
    named = requests.c.key_hash.in_([key for key in keys if key is not None])
    in_keys = or_(named, requests.c.key_hash.is_(None)) if None in keys else named
    query = select(*each, func.count()).where(requests.c.created_at >= since, in_keys)
    found = await connection.execute(query.group_by(*each))
    return {(row[0], row[1], row[2]): row[3] for row in found}


def _plain(column: Column[Any]) -> ColumnElement[Any]:
    """Wrap the column so that no index fits it: SQLite would prefer the index on the service level,
    over the whole log, to the one on the times, over a day."""
    return func.coalesce(column, "")


def _judges(since: datetime) -> Select[Any]:
    """Query the sums of weights and of weighted values of judges' labels on served answers."""
    weighed = labels.c.weight * labels.c.value
    return (
        select(_sum(labels.c.weight), _sum(weighed))
        .select_from(labels)
        .join(requests, requests.c.request_id == labels.c.request_id)
        .where(
            labels.c.created_at >= since,
            labels.c.kind == LabelKind.JUDGE,
            labels.c.call_id == served_call(labels),
        )
    )


def _labels_of_keys(since: datetime) -> Select[Any]:
    """Query the labels caused by the clients of each key, the heaviest key first; of each source,
    its newest label with a weight counts on a call."""
    newer = labels.alias("newer")
    is_replaced = exists().where(
        newer.c.call_id == labels.c.call_id,
        newer.c.source == labels.c.source,
        newer.c.position > labels.c.position,
        newer.c.weight > 0.0,
    )
    counts = (labels.c.weight > 0.0) & ~is_replaced
    is_fault = labels.c.source.in_(FAULT_FINDERS)
    weight, value = labels.c.weight, labels.c.value
    verdicts = func.count()
    each = (requests.c.zoo, requests.c.service_level, requests.c.key_hash)
    return (
        select(
            *each,
            verdicts.label("verdicts"),
            func.count(case((counts, 1))).label("counting"),
            _sum(case((counts, value))).label("total"),
            _sum(case((counts & ~is_fault, weight))).label("weight"),
            _sum(case((counts & ~is_fault, weight * value))).label("satisfied"),
            _sum(case((counts & is_fault, weight * (1.0 - value)))).label("faults"),
            func.count(case((weight <= 0.0, 1))).label("held"),
        )
        .select_from(labels)
        .join(requests, requests.c.request_id == labels.c.request_id)
        .where(labels.c.created_at >= since, labels.c.kind != LabelKind.JUDGE)
        .group_by(*each)
        .order_by(verdicts.desc(), *each)
    )


def _sum(of: Any) -> Any:
    """Sum the column; 0 for no rows."""
    return func.coalesce(func.sum(of), 0.0)
