"""What was written down beside the log, against what follows from the log: verdicts, outcomes and
sums, worked out anew."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isclose
from typing import Any

from sqlalchemy import Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.logged import AT_ONCE, logged_requests
from litellm_messplus.learning.projections import projection, rules_of
from litellm_messplus.learning.sums import SUMS, Sums, add_change, add_grading, of_grading
from litellm_messplus.store.reading import one_moment
from litellm_messplus.store.sum_tables import grading_sums, outcomes, request_sums, verdicts
from litellm_messplus.store.tables import gradings, requests
from litellm_messplus.upkeep.finding import CheckResult, Outcome, some
from litellm_messplus.vocabulary import PRECEDENCE

CHECK = "sums"
SHOWN = 3
"""Rows that are named."""
ROUNDING = 1e-6
"""What adding and taking away may have left of a sum, relative to it."""
ADVICE = (
    "were rows of the log changed by hand? Put them back from a backup; if not, report it with the "
    "version of litellm-messplus"
)

Key = tuple[Any, ...]
Row = Mapping[str, Any]
_COUNTED = {request_sums: "requests", grading_sums: "gradings"}


@dataclass
class _Compared:
    """The result of comparing; ``gone`` are requests and gradings that the log has no longer."""

    rows: int = 0
    gone: int = 0
    wrong: list[str] = field(default_factory=list)

    def compare(self, table: Table, key: Key, kept: Row | None, logged: Row | None) -> None:
        """Compare a row; what is not there is a row of nothing, which of a sum is 0."""
        self.rows += 1
        differing = list(_differing(kept or {}, logged or {}, 0 if table in SUMS else None))
        if differing:
            shown = ", ".join(str(part) for part in key)
            self.wrong.append(f"{table.name} {shown}: {', '.join(differing)}")


async def check_projections(database: AsyncEngine) -> list[CheckResult]:
    """Check the verdicts and outcomes of all requests in the log, and every row of sums of a day
    whose requests are all still there."""
    compared = _Compared()
    async with database.connect() as connection, one_moment(connection, longest_seconds=None):
        sums = await _of_requests(connection, compared)
        await _of_gradings(connection, sums)
        await _of_sums(connection, sums, compared)
    if compared.wrong:
        told = (
            f"{len(compared.wrong)} of {compared.rows} rows of verdicts, outcomes and sums are not "
            f"what the log says ({some(compared.wrong[:SHOWN], len(compared.wrong))})"
        )
        return [CheckResult(CHECK, Outcome.WRONG, told, ADVICE)]
    told = f"{compared.rows} rows of verdicts, outcomes and sums are the log's"
    findings = [CheckResult(CHECK, Outcome.SOUND, told)]
    if compared.gone:
        told = (
            f"{compared.gone} requests and gradings of the sums are no longer in the log; the sums "
            "of their days stand as they were kept"
        )
        findings.append(CheckResult(CHECK, Outcome.NOTE, told))
    return findings


async def _of_requests(connection: AsyncConnection, compared: _Compared) -> Sums:
    """Compare what was written down of each request, page by page; returns what all add up to."""
    rules, sums, seen = await rules_of(connection), Sums(), Counter[Table]()
    after = 0
    while True:
        query = (
            select(requests.c.request_id, requests.c.position)
            .where(requests.c.position > after)
            .order_by(requests.c.position)
            .limit(AT_ONCE)
        )
        page = (await connection.execute(query)).all()
        if not page:
            break
        after = page[-1].position
        ids = [row.request_id for row in page]
        found = await _kept(connection, outcomes, ids)
        said = await _kept(connection, verdicts, ids)
        for request_id, logged in (await logged_requests(connection, ids)).items():
            follows = projection(logged, rules.get(logged.request["zoo"], PRECEDENCE))
            kept = found.pop((request_id,), None)
            compared.compare(outcomes, (request_id,), kept, asdict(follows.outcome))
            for call, verdict in follows.verdicts.items():
                kept = said.pop((call,), None)
                compared.compare(verdicts, (call,), kept, verdict._asdict())
            add_change(sums, {}, follows.sums)
        for table, left in ((outcomes, found), (verdicts, said)):
            for key, row in left.items():
                compared.compare(table, key, row, None)
        seen[outcomes] += len(page)
    for table in (outcomes, verdicts):
        known = select(requests.c.request_id)
        orphans = select(func.count()).where(table.c.request_id.not_in(known))
        if count := (await connection.execute(orphans)).scalar_one():
            compared.wrong.append(f"{count} rows of {table.name} are of no request in the log")
    return sums


async def _of_gradings(connection: AsyncConnection, sums: Sums) -> None:
    query = select(gradings, requests.c.zoo).join(
        requests, requests.c.request_id == gradings.c.request_id
    )
    for row in (await connection.execute(query)).mappings():
        add_grading(sums, of_grading(row, row["zoo"]))


async def _of_sums(connection: AsyncConnection, sums: Sums, compared: _Compared) -> None:
    """Compare the rows of the days, and promises, of which the log has all requests."""
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
    """Read rows by their primary key, without it: of these requests, else all."""
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


def _differing(kept: Row, logged: Row, nothing: int | None) -> Iterator[str]:
    for name in kept or logged:
        one, other = (nothing if row.get(name) is None else row[name] for row in (kept, logged))
        if isinstance(one, int | float) and isinstance(other, int | float):
            is_same = isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
        else:
            is_same = one == other
        if not is_same:
            yield f"{name} is {one}, and {other} in the log"
