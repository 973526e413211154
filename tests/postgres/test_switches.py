"""What was forecast of a switch stands beside what happened, on Postgres as on SQLite."""

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.store.test_zoo_modes import assert_forecast_beside_happened


async def test_the_view_shows_what_happened_beside_the_forecast(database: AsyncEngine) -> None:
    await assert_forecast_beside_happened(database)
