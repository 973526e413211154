"""Cost, satisfaction and savings per key, team, tag and hour, as the views add them up."""

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.support.outcomes import EXPECTED, assert_outcomes, write_outcomes


@pytest.mark.parametrize("view", EXPECTED)
async def test_a_view_adds_up_what_was_logged(database: AsyncEngine, view: str) -> None:
    await write_outcomes(database)

    await assert_outcomes(database, view)


async def test_a_key_has_its_alias_next_to_its_hash(database: AsyncEngine) -> None:
    await write_outcomes(database)

    async with database.connect() as connection:
        found = await connection.execute(text("SELECT key_hash, key_alias FROM outcomes_per_key"))
        assert {row.key_hash: row.key_alias for row in found} == {"a": "ada", "b": None}
