"""Integrity of a database: its file, its tables, the order of its log, the references between its
records; and the findings of any check."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    Table,
    case,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.log import TABLE_OF
from litellm_messplus.store.schema import differences
from litellm_messplus.store.tables import (
    call_energy,
    calls,
    candidate_events,
    gradings,
    labels,
    log_head,
    requests,
    served_call,
)

# The findings of a check.


class Outcome(StrEnum):
    """The outcomes of a check. A note is worth knowing and is no damage."""

    SOUND = "sound"
    NOTE = "note"
    SKIPPED = "skipped"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finding of a check; ``advice`` is what to do, if anything."""

    check: str
    outcome: Outcome = field(kw_only=True)
    told: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.told}: {self.advice}" if self.advice else self.told


sound = partial(CheckResult, outcome=Outcome.SOUND)
noted = partial(CheckResult, outcome=Outcome.NOTE)
skipped = partial(CheckResult, outcome=Outcome.SKIPPED)
wrong = partial(CheckResult, outcome=Outcome.WRONG)
"""A finding of each outcome, from the check and what is to be reported."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All findings on one database, which is shown without its password."""

    database: str
    findings: tuple[CheckResult, ...]

    @property
    def wrong(self) -> list[CheckResult]:
        """The findings that need action."""
        return [finding for finding in self.findings if finding.outcome is Outcome.WRONG]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "database": self.database,
            "is_sound": not self.wrong,
            "findings": [asdict(finding) for finding in self.findings],
        }


def some(of: Iterable[object], count: int) -> str:
    """Write the first few in words, out of ``count``."""
    shown = [str(each) for each in of]
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


# Whether the database can be read: SQLite's own check of its file.

FILE_CHECK = "file"
MOST = 20
"""Most faults that SQLite lists before it stops looking."""
ADVICE = "restore the database from a backup, or move it away to begin anew"


async def check_file(database: AsyncEngine) -> CheckResult:
    """Check the file by `PRAGMA integrity_check`. Postgres has no such check in SQL."""
    if database.dialect.name != "sqlite":
        text = "only a SQLite file is checked; for Postgres there is pg_amcheck"
        return skipped(FILE_CHECK, text)
    faults = await _faults(database)
    if not faults:
        return sound(FILE_CHECK, "SQLite finds no fault in the file")
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return wrong(FILE_CHECK, f"the file is damaged: {faults[0]}{more}", ADVICE)


async def _faults(database: AsyncEngine) -> list[str]:
    try:
        async with database.connect() as connection:
            found = await connection.exec_driver_sql(f"PRAGMA integrity_check({MOST})")
            lines = [" ".join(str(line).split()) for line in found.scalars()]
    except DatabaseError as error:
        if "malformed" not in str(error.orig) and "not a database" not in str(error.orig):
            raise
        return [str(error.orig)]
    return [] if lines == ["ok"] else lines


# The tables of this version, which a start requires too.

SCHEMA_CHECK = "schema"
AS_MADE = "every table, column and index is as the migrations of this version make it"


async def check_schema(database: AsyncEngine) -> CheckResult:
    """Check the tables, their columns and their indexes against the code's."""
    async with database.connect() as connection:
        found = await connection.run_sync(differences)
    if not found:
        return sound(SCHEMA_CHECK, AS_MADE)
    return wrong(SCHEMA_CHECK, some(found[:SHOWN], len(found)), ADVICE)


# Records that refer to others: does the other exist?

REFERENCES_CHECK = "references"
SHOWN = 3
"""Most records that are named."""
RESTORE = (
    "restore the missing rows from a backup, or delete these too; then DELETE FROM snapshots, so "
    "that the next start folds the whole log"
)


class _Rule(NamedTuple):
    """A rule: the rows that ``broken`` finds, by their id, break it."""

    text: str
    broken: Select[Any]


async def check_references(database: AsyncEngine) -> list[CheckResult]:
    """Check that each call has its request, each label its call, and both the same request."""
    async with database.connect() as connection:
        found = [await _check(connection, rule) for rule in _rules()]
        waiting = await _count(connection, _labels_before_their_call())
    findings = [finding for finding in found if finding is not None]
    if not findings:
        text = "every call, label, grading and measured energy has its request"
        findings.append(sound(REFERENCES_CHECK, text))
    if waiting:
        text = (
            f"{waiting} labels are of served calls that have not ended, or whose end was lost when "
            "a proxy was killed: their verdicts count, and teach nothing"
        )
        findings.append(noted(REFERENCES_CHECK, text))
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
    """Tell whether a label is on a served call, whose id is known from the start, so that it may be
    judged before it has ended."""
    return labels.c.call_id == served_call(labels)


def _labels_before_their_call() -> Select[Any]:
    return _without(labels, labels.c.label_id, calls).where(_is_of_served_call())


async def _check(connection: AsyncConnection, rule: _Rule) -> CheckResult | None:
    count = await _count(connection, rule.broken)
    if count == 0:
        return None
    shown = (await connection.execute(rule.broken.limit(SHOWN))).scalars().all()
    text = f"{count} {rule.text} ({some(shown, count)})"
    return wrong(REFERENCES_CHECK, text, RESTORE)


async def _count(connection: AsyncConnection, query: Select[Any]) -> int:
    counted = select(func.count()).select_from(query.subquery())
    return (await connection.execute(counted)).scalar_one()


# The order of the log: each position once over all tables, and none beyond the log's head.

ORDER_CHECK = "positions"
"""The name of the check of the log's order."""


async def check_positions(database: AsyncEngine) -> list[CheckResult]:
    """Check the positions of requests, calls, labels and all others, which share one numbering."""
    async with database.connect() as connection:
        taken = _everywhere()
        query = select(  # at once: a running proxy appends between two statements
            func.count(),
            func.count(taken.c.position.distinct()),
            func.min(case((taken.c.name != candidate_events.name, taken.c.position))),
            func.max(taken.c.position),
            select(log_head.c.position).scalar_subquery(),
            func.coalesce(select(log_head.c.start).scalar_subquery(), 0),
        )
        records, distinct, first, last, head, start = (await connection.execute(query)).one()
        broken = list(_bounds(first or 1, last or 0, head, start))
        if records > distinct:
            broken.append(await _shared(connection, taken))
    if broken:
        return broken
    findings = [sound(ORDER_CHECK, f"{records} records, each at a position of its own")]
    if start:
        left = ", and rows of them are still there: the next `messplus prune` deletes them"
        is_done = first is None or first > start
        text = f"requests and lessons up to {start} are pruned{'' if is_done else left}"
        findings.append(noted(ORDER_CHECK, text))
    empty = (head or 0) - distinct
    if empty and not start:
        text = (
            f"{empty} of {head} positions are empty, as `messplus import --lessons "
            "--forget` leaves them (and rows that were deleted by hand)"
        )
        findings.append(noted(ORDER_CHECK, text))
    return findings


def _everywhere() -> Subquery:
    return union_all(
        *(
            select(table.c.position, literal(table.name).label("name"))
            for table in TABLE_OF.values()
        )
    ).subquery("taken")


def _bounds(first: int, last: int, head: int | None, start: int) -> Iterator[CheckResult]:
    if head is None:
        yield wrong(
            ORDER_CHECK,
            "the table log_head is empty, which holds the end of the log",
            f"stop the proxy, then: INSERT INTO log_head (id, position) VALUES (1, {last})",
        )
    elif last > head:
        yield wrong(
            ORDER_CHECK,
            f"log_head states that the log ends at {head}, and there is a record at {last}",
            f"stop the proxy, then: UPDATE log_head SET position = {last}",
        )
    elif start > head:
        yield wrong(
            ORDER_CHECK,
            f"log_head states that the log is pruned up to {start}, and ends at {head}",
            "restore the database from a backup",
        )
    if first < 1:
        yield wrong(
            ORDER_CHECK,
            f"there is a record at {first}; positions begin at 1",
            "delete that record, or restore the database from a backup",
        )


async def _shared(connection: AsyncConnection, taken: Subquery) -> CheckResult:
    """Find the positions that more than one record has; each is unique within its table."""
    twice = (
        select(taken.c.position).group_by(taken.c.position).having(func.count() > 1)
    ).subquery()
    count = (await connection.execute(select(func.count()).select_from(twice))).scalar_one()
    query = select(twice.c.position).order_by(twice.c.position).limit(SHOWN)
    shown = (await connection.execute(query)).scalars().all()
    named = []
    for position in shown:
        tables = select(taken.c.name).where(taken.c.position == position).order_by(taken.c.name)
        names = (await connection.execute(tables)).scalars().all()
        named.append(f"{position} ({' and '.join(names)})")
    return wrong(
        ORDER_CHECK,
        f"more than one record is at position {some(named, count)}, so the log has no order there",
        "restore the database from a backup, or delete the record that does not belong there",
    )
