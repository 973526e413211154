"""Updating what is derived from the log, in the transaction that appends to it: which label of each
call counts, the outcome of each request, and the sums of those that are summed already.

All of it follows from all that is logged about a request, and a call or a label may change any of
it. Untouched rows are not read: they may leave the log, and stay in the sums."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.core.verdict import counting
from litellm_messplus.learning.outcome import outcomes_of
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.vocabulary import PRECEDENCE, CallStatus, LabelKind
from litellm_messplus.store import hours
from litellm_messplus.store.rows import AT_ONCE, in_parts
from litellm_messplus.store.standing import newest_labels
from litellm_messplus.store.tables import calls, labels, log_head, requests

Rules = Mapping[str, Sequence[str]]
"""The kinds of labels that count, strongest first, by zoo; a zoo not listed has the default."""


@asynccontextmanager
async def projecting(
    connection: AsyncConnection, touched: Collection[str], judged: Collection[str], summed: int
) -> AsyncIterator[None]:
    """Update what is derived from the ``touched`` requests to the rows written inside, under the
    log's lock, of the ``judged`` also which labels count. Those up to ``summed`` are in the
    sums."""
    again = await _summed(connection, touched, summed)
    await hours.add(connection, again, -1)
    yield
    for some in in_parts(judged):
        await _judge(connection, some)
    for some in in_parts(touched):
        await connection.execute(outcomes_of(connection.dialect.name), {"ids": some})
    await hours.add(connection, again, 1)


async def _summed(
    connection: AsyncConnection, touched: Collection[str], summed: int
) -> Sequence[str]:
    """Find those of the requests that are in the sums."""
    if not touched or not summed:
        return ()
    is_summed = requests.c.request_id.in_(touched), requests.c.position <= summed
    found = await connection.execute(select(requests.c.request_id).where(*is_summed))
    return found.scalars().all()


async def _judge(connection: AsyncConnection, request_ids: Collection[str]) -> None:
    """Mark the labels on the calls of these requests that count: a failed call has no answer to
    judge."""
    of, rules = labels.c, await rules_of(connection)
    is_theirs = of.request_id.in_(request_ids)
    standing = newest_labels(is_theirs)
    query = (
        select(requests.c.zoo, of.call_id, of.label_id, of.kind, of.source, of.value, of.weight)
        .join(standing, standing.c.position == of.position)
        .join(requests, requests.c.request_id == of.request_id)
        .outerjoin(calls, calls.c.call_id == of.call_id)
        .where(calls.c.status.is_(None) | (calls.c.status == CallStatus.SUCCESS))
        .order_by(of.position)
    )
    by_call: dict[str, list[Any]] = defaultdict(list)
    for row in await connection.execute(query):
        by_call[row.call_id].append(row)
    verdicts = (counting(all_, rules.get(all_[0].zoo, PRECEDENCE)) for all_ in by_call.values())
    counts = of.label_id.in_([each.label_id for each in verdicts if each is not None])
    changed = update(labels).where(is_theirs, of.counts != counts).values(counts=counts)
    await connection.execute(changed)


# The precedence of labels, stored at the start, so that every writer projects by one rule.
#
# Another rule gives other verdicts for the same labels: what is derived from the requests still in
# the log is computed anew.


async def rules_of(connection: AsyncConnection) -> Rules:
    """Read the kinds of labels that count by zoo; zoos without a stored rule are not included."""
    found: Rules = (await connection.execute(select(log_head.c.precedence))).scalar_one()
    return found


async def save_rules(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every zoo in ``precedence``: its kinds that count, strongest first.

    Workers that start together take turns, as writers of the log do.
    """
    lock = update(log_head).values(position=log_head.c.position)
    rules = {zoo: [str(kind) for kind in kinds] for zoo, kinds in precedence.items()}
    async with engine.begin() as connection:
        found = await connection.execute(lock.returning(log_head.c.precedence, log_head.c.summed))
        before, summed = found.one()
        await connection.execute(update(log_head).values(precedence={**before, **rules}))
        for zoo, rule in rules.items():
            if rule != list(before.get(zoo, PRECEDENCE)):
                logger.info("zoo %s: labels count by another rule, so its sums are made anew", zoo)
                await _follow(connection, zoo, summed)


async def _follow(connection: AsyncConnection, zoo: str, summed: int) -> None:
    """Compute again what is derived from the labelled requests of a zoo, page by page."""
    has_label = select(labels.c.label_id).where(labels.c.request_id == requests.c.request_id)
    query = (
        select(requests.c.request_id, requests.c.position)
        .where(requests.c.zoo == zoo, has_label.exists())
        .order_by(requests.c.position)
        .limit(AT_ONCE)
    )
    after = 0
    while page := (await connection.execute(query.where(requests.c.position > after))).all():
        ids = [row.request_id for row in page]
        async with projecting(connection, ids, ids, summed):
            after = page[-1].position
