"""Cost, satisfaction and savings per key, team, tag and hour, on Postgres as on SQLite."""

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.support.outcomes import EXPECTED, assert_outcomes, write_outcomes


async def test_the_views_add_up_what_was_logged(database: AsyncEngine) -> None:
    await write_outcomes(database)

    for view in EXPECTED:
        await assert_outcomes(database, view)
