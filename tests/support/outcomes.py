"""Requests of two keys over two hours, and what each name, team, tag and hour comes to."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import log
from tests.support.builders import LARGE, SMALL, label, request, served_call

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
ADA: dict[str, Any] = {"key_hash": "a", "key_alias": "ada", "team_id": "red"}
BOB: dict[str, Any] = {"key_hash": "b", "key_alias": None, "team_id": None}
HISTORY: tuple[tuple[str, dict[str, Any], float, float | None], ...] = (
    ("r1", {**ADA, "tags": ("search", "beta"), "created_at": AT}, 2.0, 1.0),
    ("r2", {**ADA, "tags": ("search",), "created_at": AT}, 1.0, 0.0),
    ("r3", {**BOB, "tags": None, "created_at": LATER}, 3.0, None),
)
"""Each with the cost of the small model, which served, and its verdict; the large would have cost
5.0."""
FIGURES = (
    *("requests", "answered", "failed", "judged", "satisfaction"),
    *("cost", "saved", "saved_share"),
)
BOTH, LAST = (2, 2, 0, 2, 0.5, 3.0, 7.0, 0.7), (1, 1, 0, 0, None, 3.0, 2.0, 0.4)
EXPECTED: dict[str, tuple[str, dict[Any, tuple[Any, ...]]]] = {
    "outcomes_per_key": ("key_hash", {"a": BOTH, "b": LAST}),
    "outcomes_per_tag": ("tag", {"search": BOTH, "beta": (1, 1, 0, 1, 1.0, 2.0, 3.0, 0.6)}),
}
"""By view: the column that tells its rows apart, and ``FIGURES`` of each."""


async def write_outcomes(database: AsyncEngine) -> None:
    """Log the requests, their calls and their verdicts."""
    for name, who, cost, value in HISTORY:
        asked = request(name, chosen=SMALL, largest=LARGE, is_exploration=False, **who)
        await log.append(database, [asked, served_call(name, candidate=SMALL, cost=cost)])
        if value is not None:
            await log.append(database, [label(name, value=value)])


async def assert_outcomes(database: AsyncEngine, view: str) -> None:
    """Hold a view to what the requests come to."""
    column, expected = EXPECTED[view]
    async with database.connect() as connection:
        rows = (await connection.execute(text(f"SELECT * FROM {view}"))).mappings().all()
    assert {str(row["day"]) for row in rows} == {"2026-03-01"}
    found = {row[column]: tuple(row[figure] for figure in FIGURES) for row in rows}
    assert set(found) == set(expected)
    for name, figures in expected.items():
        assert found[name] == pytest.approx(figures), name
