"""Which keys ask and judge how much, over the last day."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, case, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.key_influence import KeyActivity, LevelActivity
from litellm_messplus.store.tables import labels, requests

SPAN = timedelta(days=1)
MOST_KEYS = 200
"""Of a service level, those that judge most: the others have little to say."""


@dataclass(frozen=True, slots=True)
class KeyVerdicts:
    """Of one key in a service level: its requests and verdicts; of those that count the number, and
    the share that is satisfied (None without any); and how many are kept without counting."""

    zoo: str
    service_level: str
    key_hash: str | None
    requests: int
    verdicts: int
    counting: int
    satisfied: float | None
    not_counting: int


async def activity(engine: AsyncEngine, zoo: str, service_level: str) -> LevelActivity:
    """Of the last day. Raises SQLAlchemyError where the database does not answer."""
    since = datetime.now(UTC) - SPAN
    in_level = and_(
        _plain(requests.c.zoo) == zoo, _plain(requests.c.service_level) == service_level
    )
    async with engine.connect() as connection:
        found = await connection.execute(_verdicts(since).where(in_level).limit(MOST_KEYS))
        judged = {row.key_hash: row for row in found}
        everybody = select(func.count()).where(requests.c.created_at >= since, in_level)
        total = (await connection.execute(everybody)).scalar_one()
        asked = await _requests_of(connection, since, list(judged))
    return LevelActivity(
        requests=total,
        keys={
            key: KeyActivity(asked.get((zoo, service_level, key), 0), row.counting, row.satisfied)
            for key, row in judged.items()
        },
    )


async def heaviest_keys(connection: AsyncConnection, most: int) -> list[KeyVerdicts]:
    """Those that judged most in the last day, whether it counts or not."""
    since = datetime.now(UTC) - SPAN
    rows = (await connection.execute(_verdicts(since).limit(most))).all()
    asked = await _requests_of(connection, since, [row.key_hash for row in rows])
    return [
        KeyVerdicts(
            zoo=row.zoo,
            service_level=row.service_level,
            key_hash=row.key_hash,
            requests=asked.get((row.zoo, row.service_level, row.key_hash), 0),
            verdicts=row.verdicts,
            counting=row.counting,
            satisfied=row.satisfied / row.counting if row.counting else None,
            not_counting=row.not_counting,
        )
        for row in rows
    ]


async def _requests_of(
    connection: AsyncConnection, since: datetime, keys: list[str | None]
) -> dict[tuple[str, str, str | None], int]:
    """How many requests each of these keys made, by zoo and service level."""
    each = (_plain(requests.c.zoo), _plain(requests.c.service_level), requests.c.key_hash)
    named = {key for key in keys if key is not None}
    query = (
        select(*each, func.count())
        .where(requests.c.created_at >= since, requests.c.key_hash.in_(named))
        .group_by(*each)
    )
    return {(row[0], row[1], row[2]): row[3] for row in await connection.execute(query)}


def _plain(column: Column[Any]) -> ColumnElement[Any]:
    """The column as no index knows it. Of a service level there is an index too, and SQLite would
    rather go along it through the whole log than through a day by its times."""
    return func.coalesce(column, "")


def _verdicts(since: datetime) -> Select[Any]:
    """The feedback of each key, the heaviest first; of a call counts its newest that weighs."""
    newer = labels.alias("newer")
    is_replaced = exists().where(
        newer.c.call_id == labels.c.call_id,
        newer.c.source == labels.c.source,
        newer.c.position > labels.c.position,
        newer.c.weight > 0.0,
    )
    counts = (labels.c.weight > 0.0) & ~is_replaced
    verdicts = func.count()
    each = (requests.c.zoo, requests.c.service_level, requests.c.key_hash)
    return (
        select(
            *each,
            verdicts.label("verdicts"),
            func.count(case((counts, 1))).label("counting"),
            func.coalesce(func.sum(case((counts, labels.c.value))), 0.0).label("satisfied"),
            func.count(case((labels.c.weight <= 0.0, 1))).label("not_counting"),
        )
        .select_from(labels)
        .join(requests, requests.c.request_id == labels.c.request_id)
        .where(labels.c.created_at >= since, labels.c.kind == LabelKind.FEEDBACK)
        .group_by(*each)
        .order_by(verdicts.desc(), *each)
    )
