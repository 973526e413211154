"""What was forecast of a switch stands next to what happened, on Postgres as on SQLite."""

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.support.switches import assert_forecast_and_happened


async def test_the_view_shows_what_happened_next_to_the_forecast(database: AsyncEngine) -> None:
    await assert_forecast_and_happened(database)
