"""Verification of a database: its integrity, and whether all derived data follows from the log.
Verdicts, outcomes and sums, snapshots, decisions, and the queues of a running proxy are recomputed
and compared."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table as TerminalTable
from sqlalchemy import Table, func, make_url, select
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.learning.logged import AT_ONCE, logged_requests
from litellm_messplus.learning.projections import projection, rules_of
from litellm_messplus.learning.sums import SUMS, Sums, add_change, of_grading
from litellm_messplus.rows import flat
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.vocabulary import PRECEDENCE
from litellm_messplus.state import snapshot
from litellm_messplus.status.report import Source, Status
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.snapshots import Snapshot
from litellm_messplus.store.tables import (
    grading_sums,
    gradings,
    outcomes,
    request_sums,
    requests,
    verdicts,
)
from litellm_messplus.upkeep.decisions import Decisions
from litellm_messplus.upkeep.folding import (
    Fold,
    UnreadableLogError,
    difference,
    difference_of_states,
)
from litellm_messplus.upkeep.integrity import (
    ADVICE,
    SHOWN,
    CheckResult,
    Outcome,
    VerifyReport,
    check_file,
    check_positions,
    check_references,
    check_schema,
    noted,
    skipped,
    some,
    sound,
    wrong,
)

# Verdicts, outcomes and sums, which are written in the transaction of the log.

SUMS_CHECK = "sums"
SUMS_ADVICE = (
    "were rows of the log changed by hand? Put them back from a backup; if not, report it with the "
    "version of litellm-messplus"
)

Key = tuple[Any, ...]
Row = Mapping[str, Any]
_COUNTED = {request_sums: "requests", grading_sums: "gradings"}


@dataclass
class _Compared:
    """The result of comparing; ``gone`` are requests and gradings no longer in the log."""

    rows: int = 0
    gone: int = 0
    wrong: list[str] = field(default_factory=list)

    def compare(self, table: Table, key: Key, kept: Row | None, logged: Row | None) -> None:
        """Compare a row; a missing row has no values, which in a sum are 0."""
        self.rows += 1
        nothing = 0 if table in SUMS else None
        rows = kept or {}, logged or {}
        one, other = (
            {name: nothing if row.get(name) is None else row[name] for name in rows[0] or rows[1]}
            for row in rows
        )
        if one == other:
            return
        found = difference(one, other)
        if not found.is_rounding:
            shown, place = ", ".join(map(str, key)), found.place
            text = f"{place} is {one[place]}, and {other[place]} in the log"
            self.wrong.append(f"{table.name} {shown}: {text}")


async def check_projections(database: AsyncEngine) -> list[CheckResult]:
    """Check the verdicts and outcomes of all requests in the log, and every row of sums of a day
    whose requests are all still in the log."""
    compared = _Compared()
    async with database.connect() as connection, one_moment(connection, longest_seconds=None):
        sums = await _of_requests(connection, compared)
        query = select(gradings, requests.c.zoo).join(
            requests, requests.c.request_id == gradings.c.request_id
        )
        for row in (await connection.execute(query)).mappings():
            add_change(sums, {}, of_grading(row, row["zoo"]))
        await _of_sums(connection, sums, compared)
    if compared.wrong:
        text = (
            f"{len(compared.wrong)} of {compared.rows} rows of verdicts, outcomes and sums are not "
            f"what the log gives ({some(compared.wrong[:SHOWN], len(compared.wrong))})"
        )
        return [wrong(SUMS_CHECK, text, SUMS_ADVICE)]
    text = f"{compared.rows} rows of verdicts, outcomes and sums are the log's"
    findings = [sound(SUMS_CHECK, text)]
    if compared.gone:
        text = (
            f"{compared.gone} requests and gradings of the sums are no longer in the log; the sums "
            "of their days stand as they were kept"
        )
        findings.append(noted(SUMS_CHECK, text))
    return findings


async def _of_requests(connection: AsyncConnection, compared: _Compared) -> Sums:
    """Compare the derived rows of each request, page by page; return the sums of all."""
    rules, sums, after = await rules_of(connection), Sums(), 0
    own = requests.c
    while True:
        query = select(own.request_id, own.position).where(own.position > after)
        page = (await connection.execute(query.order_by(own.position).limit(AT_ONCE))).all()
        if not page:
            break
        after = page[-1].position
        ids = [row.request_id for row in page]
        kept = {table: await _kept(connection, table, ids) for table in (outcomes, verdicts)}
        for request_id, logged in (await logged_requests(connection, ids)).items():
            follows = projection(logged, rules.get(logged.request["zoo"], PRECEDENCE))
            rows: list[tuple[Table, str, Row]] = [(outcomes, request_id, flat(follows.outcome))]
            rows += [(verdicts, call, flat(each)) for call, each in follows.verdicts.items()]
            for table, key, row in rows:
                compared.compare(table, (key,), kept[table].pop((key,), None), row)
            add_change(sums, {}, follows.sums)
        for table, left in kept.items():
            for lone in left:
                compared.compare(table, lone, left[lone], None)
    for table in (outcomes, verdicts):
        known = select(own.request_id)
        orphans = select(func.count()).where(table.c.request_id.not_in(known))
        if count := (await connection.execute(orphans)).scalar_one():
            compared.wrong.append(f"{count} rows of {table.name} are of no request in the log")
    return sums


async def _of_sums(connection: AsyncConnection, sums: Sums, compared: _Compared) -> None:
    """Compare the rows of the days and promises whose requests are all in the log."""
    kept_of = {table: await _kept(connection, table) for table in SUMS}
    gone: dict[Table, Counter[Key]] = {}
    for table, name in _COUNTED.items():
        gone[table] = Counter()
        for key, row in kept_of[table].items():
            gone[table][key[:3]] += row[name]
        for (of, key), figures in sums.items():
            if of is table:
                gone[table][key[:3]] -= int(figures[name])
        compared.gone += sum(count for count in gone[table].values() if count > 0)
    for table, kept in kept_of.items():
        logged = {key: figures for (of, key), figures in sums.items() if of is table}
        is_gone = gone[grading_sums if table is grading_sums else request_sums]
        for key in sorted({**kept, **logged}, key=str):
            if is_gone[key[:3]] <= 0:
                compared.compare(table, key, kept.get(key), logged.get(key))


async def _kept(
    connection: AsyncConnection, table: Table, ids: list[str] | None = None
) -> dict[Key, Row]:
    """Read rows by their primary key, which is left out of them: of these requests, else all."""
    keys = [each.name for each in table.primary_key.columns]
    query = select(table)
    if ids is not None:
        query = query.where(table.c.request_id.in_(ids))
    return {
        tuple(row[key] for key in keys): {
            name: value for name, value in row.items() if name not in keys
        }
        for row in (await connection.execute(query)).mappings()
    }


# The newest snapshot of each zoo, which only abbreviates the log, against the fold.

SNAPSHOTS_CHECK, FOLD_CHECK, BASES_CHECK = "snapshots", "fold", "bases"


async def _of_snapshots(
    database: AsyncEngine,
    fold: Fold,
    taken: Mapping[str, Snapshot | None],
) -> list[CheckResult]:
    """Fold the log to its head; on the way, compare each zoo's state with its snapshot, and compute
    the decisions again.

    The state after a snapshot follows from it and the log alone: if they are equal to the bit
    there, a start from either ends in the same state.
    """
    head, findings = await log.head(database), []
    decisions = Decisions(database, fold, head)
    for zoo, found in sorted(taken.items(), key=lambda each: each[1].position if each[1] else 0):
        if found is None:
            text = f"{zoo}: no snapshot fits these settings; a start folds the whole log"
            findings.append(noted(SNAPSHOTS_CHECK, text))
        elif found.position > head:
            text = (
                f"{zoo}: the newest snapshot is at {found.position}, and the log ends at {head} "
                "(was an older copy put back?); the next start drops it, and folds the whole log"
            )
            findings.append(noted(SNAPSHOTS_CHECK, text))
        else:
            await decisions.to(found.position)
            findings.append(await _of_snapshot(database, fold.engines[zoo], found))
    await decisions.to(head)
    findings += decisions.findings()
    if fold.failed:
        text = f"{fold.failed} entries of the log cannot be folded in ({'; '.join(fold.failures)})"
        advice = "every start passes them over; report them with the version of litellm-messplus"
        return [*findings, wrong(FOLD_CHECK, text, advice)]
    text = f"{', '.join(fold.engines)}: the whole log is folded in, up to {head}"
    return [*findings, sound(FOLD_CHECK, text)]


async def _of_snapshot(database: AsyncEngine, engine: Engine, found: Snapshot) -> CheckResult:
    """Compare a snapshot with an engine that was folded to its position."""
    at = f"{found.zoo}: the snapshot at {found.position}"
    advice = (
        f"stop the proxy, then: DELETE FROM snapshots WHERE zoo = '{found.zoo}'; the next start "
        "folds the whole log"
    )
    try:
        state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError) as error:
        return wrong(SNAPSHOTS_CHECK, f"{at} cannot be read ({error})", advice)
    if state.taught != await snapshots.lessons_upto(database, found.zoo, found.position):
        text = f"{at} holds lessons that were taken back; the next start folds the whole log"
        return noted(SNAPSHOTS_CHECK, text)
    differs = difference_of_states(state, engine.state)
    if differs is None:
        return sound(SNAPSHOTS_CHECK, f"{at} is the fold of the log, to the bit")
    if differs.is_rounding:
        text = (
            f"{at} is the fold of the log but for rounding ({differs.share:.0e} of {differs.place})"
            ", as on another processor or by another numpy"
        )
        return noted(SNAPSHOTS_CHECK, text)
    return wrong(SNAPSHOTS_CHECK, f"{at} is not the fold of the log (see {differs.place})", advice)


# The queues that a running proxy reports.

QUEUES_CHECK = "queues"
PATIENCE_SECONDS = 10.0
"""Seconds to wait: a running proxy is a little behind the log, or ahead of what was read of it."""
LOOK_SECONDS = 0.5
"""Seconds between two looks."""
TOLERANCE = 1e-9

Fetch = Callable[[], Status]
"""A query of the running proxy. Raises NoAnswerError if it does not answer."""


async def _of_queues(database: AsyncEngine, fold: Fold, fetch: Fetch) -> Iterator[CheckResult]:
    """Check that each level's queue is one that the fold had since the first look: the proxy does
    not report its position in the log."""
    had: dict[tuple[str, str], list[float]] = {}

    def look(zoo: str) -> None:
        engine = fold.engines[zoo]
        for level in engine.zoo.promises(engine.state.requests):
            queue = engine.state.policy.queue(level)
            had.setdefault((zoo, level), []).append(queue)

    for name in fold.engines:
        look(name)
    right, deadline = set[tuple[str, str]](), time.monotonic() + PATIENCE_SECONDS
    while True:
        status = await asyncio.to_thread(fetch)
        reported = {
            (each.zoo, each.service_level): each.queue
            for each in status.levels
            if each.source is Source.ENGINE and each.queue is not None
        }
        await fold.to(await log.head(database), lambda entry: look(entry.zoo))
        right |= {
            level
            for level in had.keys() & reported.keys()
            if any(abs(reported[level] - each) <= TOLERANCE for each in had[level])
        }
        if len(right) == len(had) or time.monotonic() > deadline:
            break
        await asyncio.sleep(LOOK_SECONDS)
    return (
        _of_queue(", ".join(level), reported.get(level), had[level][-1], is_right=level in right)
        for level in had
    )


def _of_queue(name: str, reported: float | None, folded: float, *, is_right: bool) -> CheckResult:
    if is_right:
        return sound(QUEUES_CHECK, f"{name}: the proxy's queue is the fold's")
    if reported is None:
        return wrong(
            QUEUES_CHECK,
            f"{name}: the proxy does not know this service level",
            "give the configuration that the proxy runs with",
        )
    return wrong(
        QUEUES_CHECK,
        f"{name}: the proxy's queue is {reported:.9g}, and the fold's {folded:.9g}",
        "give the configuration and the database that the proxy runs with; if these are, restart "
        "the proxy, which folds the log again",
    )


# All checks of a database, one after the other, as far as its data can be trusted.

NO_CONFIG = "only a configuration states what the log folds into: give it with --config"
NO_URL = "a running proxy is asked with --url"
NOT_THE_LOG = "not looked at: the log is not as it was written"
NO_ORDER = "not looked at: the log has no order to fold in"


async def verify(
    database: str, engines: Mapping[str, Engine] | None, fetch: Fetch | None
) -> VerifyReport:
    """Check the database at an SQLAlchemy URL, or the SQLite one at a path; it is only read.

    With ``engines`` of its zoos the log is folded, and the proxy behind ``fetch`` compared with it.
    Raises UnreadableDatabaseError if nothing can be read, NoAnswerError if the proxy does not
    answer.
    """
    try:
        shown = make_url(database).render_as_string()
    except ArgumentError:
        shown = database  # a path
    async with reading(database) as engine:
        return VerifyReport(shown, tuple(await _findings(engine, engines, fetch)))


async def _findings(
    database: AsyncEngine, engines: Mapping[str, Engine] | None, fetch: Fetch | None
) -> list[CheckResult]:
    findings = [await check_file(database)]
    if findings[0].outcome is Outcome.WRONG:
        return findings  # other data read from it may be anything
    findings.append(await check_schema(database))
    if findings[-1].outcome is Outcome.WRONG:
        return findings  # nor can it be read as this version does
    findings += await check_positions(database)
    is_ordered = all(finding.outcome is not Outcome.WRONG for finding in findings)
    findings += await check_references(database)
    if any(finding.outcome is Outcome.WRONG for finding in findings):
        findings.append(skipped(SUMS_CHECK, NOT_THE_LOG))
    else:
        findings += await check_projections(database)
    if engines is None or not is_ordered:
        reason = NO_CONFIG if engines is None else NO_ORDER
        return [*findings, skipped(FOLD_CHECK, reason)]
    return findings + await _of_the_fold(database, engines, fetch)


async def _of_the_fold(
    database: AsyncEngine, engines: Mapping[str, Engine], fetch: Fetch | None
) -> list[CheckResult]:
    taken = {  # before the head of the log is read: a running proxy takes new ones
        name: await snapshots.newest(
            database, name, snapshot.fingerprint(engine.zoo, engine.encoder.name)
        )
        for name, engine in engines.items()
    }
    fold = Fold(database, engines)
    try:
        await fold.begin()
        bases = await snapshots.bases(database)
        findings = [
            sound(
                BASES_CHECK,
                f"{each.zoo}: the fold begins at {each.position}, with the state that the log was "
                f"pruned to on {each.created_at:%Y-%m-%d}",
            )
            for each in bases.values()
        ]
        findings += await _of_snapshots(database, fold, taken)
        if fetch is None:
            return [*findings, skipped(QUEUES_CHECK, NO_URL)]
        return [*findings, *await _of_queues(database, fold, fetch)]
    except ConfigurationError as error:
        return [wrong(BASES_CHECK, f"no start is possible: {error}")]
    except UnreadableLogError as error:
        return [wrong(FOLD_CHECK, str(error), ADVICE)]


# A report as a table for the terminal.

STYLES = {
    Outcome.SOUND: "green",
    Outcome.NOTE: "yellow",
    Outcome.SKIPPED: "dim",
    Outcome.WRONG: "red",
}


def render(report: VerifyReport) -> TerminalTable:
    """Render one row a finding."""
    table = TerminalTable(title=report.database, title_justify="left")
    for name in ("check", "result", "found"):
        table.add_column(name, overflow="fold")
    for finding in report.findings:
        style = STYLES[finding.outcome]
        result = f"[{style}]{finding.outcome.value}[/{style}]"
        table.add_row(finding.check, result, finding.told.replace("[", r"\["))
    return table
