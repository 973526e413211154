"""Whose label counts first, written down at the start so that SQL sees the rule of the fold.

Another rule makes other verdicts of the same labels: where it really is another one, the sums
change by what it makes of the requests that are still in the log.
"""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.store import summaries
from litellm_messplus.store.contribution import DEFAULT_RANKS, Ranks, Sums, contribution
from litellm_messplus.store.logged_requests import AT_ONCE, logged_requests, ranks_of
from litellm_messplus.store.tables import label_precedence, labels, log_head, requests

logger = logging.getLogger(__name__)


async def save(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every given zoo: its kinds that count, the strongest first.

    Workers that start together take turns, as writers of the log do: on Postgres none sees the rows
    that another has just put in the place of those that both replace.
    """
    rows = [
        {"zoo": zoo, "kind": kind, "rank": kinds.index(kind) + 1 if kind in kinds else None}
        for zoo, kinds in precedence.items()
        for kind in LabelKind
    ]
    async with engine.begin() as connection:
        await connection.execute(update(log_head).values(position=log_head.c.position))
        before = await ranks_of(connection)
        for zoo, kinds in precedence.items():
            ranks = {kind.value: place for place, kind in enumerate(kinds, start=1)}
            await _change(connection, zoo, before.get(zoo, DEFAULT_RANKS), ranks)
        await connection.execute(
            delete(label_precedence).where(label_precedence.c.zoo.in_(list(precedence)))
        )
        await connection.execute(insert(label_precedence), rows)


async def _change(connection: AsyncConnection, zoo: str, before: Ranks, after: Ranks) -> None:
    """Let the sums of a zoo follow its rule. The log is read in pages: it may be long."""
    kinds = {kind.value for kind in LabelKind if before.get(kind) != after.get(kind)}
    if not kinds:
        return
    logger.info("zoo %s: labels count by another rule, so its sums are made anew", zoo)
    async for ids in _labelled(connection, zoo, kinds):
        changed: Sums = {}
        for logged in (await logged_requests(connection, ids)).values():
            was, now = contribution(logged, before), contribution(logged, after)
            summaries.add_change(changed, was, now)
        await summaries.add(connection, changed)


async def _labelled(
    connection: AsyncConnection, zoo: str, kinds: Collection[str]
) -> AsyncIterator[Sequence[str]]:
    """The ids of the zoo's requests that have labels of these kinds, page by page."""
    of_kinds = (
        select(labels.c.label_id)
        .where(labels.c.request_id == requests.c.request_id, labels.c.kind.in_(kinds))
        .exists()
    )
    after = 0
    while True:
        query = (
            select(requests.c.request_id, requests.c.position)
            .where(requests.c.zoo == zoo, requests.c.position > after, of_kinds)
            .order_by(requests.c.position)
            .limit(AT_ONCE)
        )
        rows: Sequence[Any] = (await connection.execute(query)).all()
        if not rows:
            return
        yield [row.request_id for row in rows]
        after = rows[-1].position
