"""Records that point to others: is there what they point to?"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import served_call_id
from litellm_messplus.store.tables import call_energy, calls, gradings, labels, requests
from litellm_messplus.upkeep.finding import Finding, Outcome, some

CHECK = "references"
SHOWN = 3
"""Records that are named."""
RESTORE = (
    "restore the missing rows from a backup, or delete these too; then DELETE FROM snapshots, so "
    "that the next start folds the whole log"
)


class _Rule(NamedTuple):
    """Rows that ``broken`` finds, by their id, break it."""

    told: str
    broken: Select[Any]


async def check_references(database: AsyncEngine) -> list[Finding]:
    """Each call has its request, each label its call, and both the same request."""
    async with database.connect() as connection:
        found = [await _check(connection, rule) for rule in _rules()]
        waiting = await _count(connection, _labels_before_their_call())
    findings = [finding for finding in found if finding is not None]
    if not findings:
        told = "every call, label, grading and measured energy has its request"
        findings.append(Finding(CHECK, Outcome.SOUND, told))
    if waiting:
        told = (
            f"{waiting} labels are of served calls that have not ended, or whose end was lost when "
            "a proxy was killed: their verdicts count, and teach nothing"
        )
        findings.append(Finding(CHECK, Outcome.NOTE, told))
    return findings


def _rules() -> Iterator[_Rule]:
    for table, key in (
        (calls, calls.c.call_id),
        (labels, labels.c.label_id),
        (gradings, gradings.c.grading_id),
        (call_energy, call_energy.c.call_id),
    ):
        yield _Rule(f"{table.name} without a request", _without(table, key, requests))
    yield _Rule("call_energy without a call", _without(call_energy, call_energy.c.call_id, calls))
    yield _Rule(
        "labels whose call is not there",
        _without(labels, labels.c.label_id, calls).where(~_is_of_served_call()),
    )
    for table, key in ((labels, labels.c.label_id), (call_energy, call_energy.c.call_id)):
        yield _Rule(
            f"{table.name} of another request than their call",
            select(key)
            .join(calls, calls.c.call_id == table.c.call_id)
            .where(calls.c.request_id != table.c.request_id),
        )


def _without(table: Table, key: ColumnElement[Any], other: Table) -> Select[Any]:
    (to,) = other.primary_key.columns
    return select(key).outerjoin(other, to == table.c[to.name]).where(to.is_(None))


def _is_of_served_call() -> ColumnElement[bool]:
    """Whose id is known from the start, so that it may be judged before it has ended."""
    return labels.c.call_id == labels.c.request_id + served_call_id("")


def _labels_before_their_call() -> Select[Any]:
    return _without(labels, labels.c.label_id, calls).where(_is_of_served_call())


async def _check(connection: AsyncConnection, rule: _Rule) -> Finding | None:
    count = await _count(connection, rule.broken)
    if count == 0:
        return None
    shown = (await connection.execute(rule.broken.limit(SHOWN))).scalars().all()
    told = f"{count} {rule.told} ({some(shown, count)})"
    return Finding(CHECK, Outcome.WRONG, told, RESTORE)


async def _count(connection: AsyncConnection, query: Select[Any]) -> int:
    counted = select(func.count()).select_from(query.subquery())
    return (await connection.execute(counted)).scalar_one()
