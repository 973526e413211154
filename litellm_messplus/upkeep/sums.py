"""The tables of sums against the log: do they say what it says?"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from sqlalchemy import Table, column, select, table
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.reading import one_moment
from litellm_messplus.store.sum_tables import grading_sums, request_sums
from litellm_messplus.store.summaries import SUMS
from litellm_messplus.upkeep.finding import CheckResult, Outcome, some

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
Rows = Mapping[Key, Mapping[str, Any]]
"""Figures by primary key."""


@dataclass
class _Compared:
    """The result of comparing; ``gone`` are requests and gradings that the log has no longer."""

    rows: int = 0
    gone: int = 0
    wrong: list[str] = field(default_factory=list)


async def check_sums(database: AsyncEngine) -> list[CheckResult]:
    """Check every row of a day whose requests are all still in the log."""
    compared = _Compared()
    async with database.connect() as connection, one_moment(connection, longest_seconds=None):
        counted = await _counted(connection, request_sums, "requests")
        gradings = await _counted(connection, grading_sums, "gradings")
        for each in SUMS:
            whole = gradings if each is grading_sums else counted
            await _compare(connection, each, whole, compared)
        _count_gone(compared, counted, gradings)
    if compared.wrong:
        told = (
            f"{len(compared.wrong)} of {compared.rows} rows of sums are not what the log says "
            f"({some(compared.wrong[:SHOWN], len(compared.wrong))})"
        )
        return [CheckResult(CHECK, Outcome.WRONG, told, ADVICE)]
    findings = [CheckResult(CHECK, Outcome.SOUND, f"{compared.rows} rows of sums are the log's")]
    if compared.gone:
        told = (
            f"{compared.gone} requests and gradings of the sums are no longer in the log; the sums "
            "of their days stand as they were kept"
        )
        findings.append(CheckResult(CHECK, Outcome.NOTE, told))
    return findings


Whole = Mapping[Key, tuple[int, int]]
"""Of each day and promise (of gradings: day, zoo and judge) how many are kept, and are logged."""


async def _counted(connection: AsyncConnection, of: Table, count: str) -> Whole:
    kept, logged = Counter[Key](), Counter[Key]()
    for found, name in ((kept, of.name), (logged, f"logged_{of.name}")):
        for key, figures in (await _rows(connection, of, name)).items():
            found[key[:3]] += figures[count]
    return {key: (kept[key], logged[key]) for key in kept | logged}


async def _compare(
    connection: AsyncConnection, of: Table, whole: Whole, compared: _Compared
) -> None:
    kept = await _rows(connection, of, of.name)
    logged = await _rows(connection, of, f"logged_{of.name}")
    for key in sorted({**kept, **logged}, key=str):
        of_sums, of_log = whole.get(key[:3], (0, 0))
        if of_sums > of_log:
            continue
        compared.rows += 1
        differing = list(_differing(kept.get(key, {}), logged.get(key, {})))
        if differing:
            shown = ", ".join(str(part) for part in key)
            compared.wrong.append(f"{of.name} {shown}: {', '.join(differing)}")


def _count_gone(compared: _Compared, *counts: Whole) -> None:
    compared.gone = sum(
        kept - logged for found in counts for kept, logged in found.values() if kept > logged
    )


async def _rows(connection: AsyncConnection, of: Table, name: str) -> Rows:
    """Read the rows of the table, or of the view that has its columns."""
    columns = [column(each.name, each.type) for each in of.columns]
    keys = [each.name for each in of.primary_key.columns]
    found = await connection.execute(select(*columns).select_from(table(name, *columns)))
    return {
        tuple(row[key] for key in keys): {
            name: value for name, value in row.items() if name not in keys
        }
        for row in found.mappings()
    }


def _differing(kept: Mapping[str, Any], logged: Mapping[str, Any]) -> Iterator[str]:
    for name in {**kept, **logged}:
        one, other = kept.get(name), logged.get(name)
        if not isclose(one or 0, other or 0, rel_tol=ROUNDING, abs_tol=ROUNDING):
            yield f"{name} is {one}, and {other} in the log"
