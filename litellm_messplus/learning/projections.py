"""Updating what is derived from the log, in the transaction that appends to it: which label of each
call counts, the outcome of each request, and the sums of those that are summed already.

All of it follows from all that is logged about a request, and a call or a label may change any of
it. Untouched rows are not read: they may leave the log, and stay in the sums."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.logged import AT_ONCE, Logged, in_parts, logged_requests
from litellm_messplus.learning.outcome import Row, outcome, verdicts
from litellm_messplus.rows import flat
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.store import hours
from litellm_messplus.store.rows import replacing
from litellm_messplus.store.tables import calls, gradings, labels, log_head, outcomes, requests

ABOUT_REQUESTS = (calls, gradings, labels)
Batch = Mapping[Table, Sequence[Row]]
"""Rows to be written, by table."""
Rules = Mapping[str, Sequence[str]]
"""The kinds of labels that count, strongest first, by zoo; a zoo not listed has the default."""


async def touched(
    connection: AsyncConnection, batch: Batch, remembered: Mapping[str, Logged]
) -> dict[str, Logged]:
    """Return all that is logged about the requests of a batch once its rows are written; what has
    no request is left out."""
    known = {row["request_id"]: Logged(row) for row in batch.get(requests, ())}
    rows = [(table.name, row) for table in ABOUT_REQUESTS for row in batch.get(table, ())]
    older = {row["request_id"] for _, row in rows} - known.keys()
    known |= {each: remembered[each] for each in older & remembered.keys()}
    known |= await logged_requests(connection, sorted(older - known.keys()))
    for name, row in rows:
        if row["request_id"] in known:
            known[row["request_id"]].add(name, row)
    return known


@asynccontextmanager
async def projecting(
    connection: AsyncConnection, known: Mapping[str, Logged], summed: int
) -> AsyncIterator[None]:
    """Update what is derived from these requests to the rows, or the rule, written inside; under
    the log's lock, with its ``summed``."""
    again = [name for name, each in known.items() if each.request["position"] <= summed]
    await hours.add(connection, again, -1)
    yield
    await _project(connection, known)
    await hours.add(connection, again, 1)


async def _project(connection: AsyncConnection, known: Mapping[str, Logged]) -> None:
    judged = [name for name, each in known.items() if each.labels]
    rules = await rules_of(connection) if judged else {}
    found: list[dict[str, Any]] = []
    counting: list[str] = []
    for each in known.values():
        rule = rules.get(each.request["zoo"], PRECEDENCE)
        counted = verdicts(each.labels, each.calls, rule)
        counting += [label.label_id for label in counted.values()]
        found.append(
            flat(outcome(each.request, each.calls, each.labels, counted, each.judging_cost))
        )
    if found:
        await connection.execute(replacing(outcomes, connection.dialect.name), found)
    for some in in_parts(judged):
        counts, is_one = labels.c.label_id.in_(counting), labels.c.request_id.in_(some)
        changed = update(labels).where(is_one, labels.c.counts != counts)
        await connection.execute(changed.values(counts=counts))


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
        known = await logged_requests(connection, [row.request_id for row in page])
        async with projecting(connection, known, summed):
            after = page[-1].position
