"""Changes of a zoo's mode, with a forecast and what happened: the same on every database."""

from dataclasses import replace
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import zoo_modes
from litellm_messplus.store.zoo_modes import WAY_BACK, ModeRow
from tests.support.builders import NOW

ROW = ModeRow("zoo", 1, "canary", 0.1, "large", "key", "because", NOW, "f" * 16)
FORECAST = {
    "requests": 900,
    "called": 400,
    "satisfaction": {"estimate": 0.81, "low": 0.78, "high": 0.84},
    "cost": None,
}
HAPPENED = {"requests": 120, "answered": 90, "satisfaction": 0.6, "cost": 0.25}


async def assert_forecast_and_happened(database: AsyncEngine) -> None:
    """In the view, whatever the database."""
    later = NOW + timedelta(hours=1)
    for row in (
        replace(ROW, mode="watch"),
        replace(ROW, revision=2, mode="on", forecast=FORECAST),
        replace(ROW, revision=3, mode="watch", by=WAY_BACK, at=later, happened=HAPPENED),
        replace(ROW, revision=4, mode="canary", at=later),
    ):
        assert await zoo_modes.append(database, row)

    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT * FROM forecasts ORDER BY revision")
        on, canary = found.mappings()
    assert (on["zoo"], on["revision"], on["mode"], on["ended_by"]) == ("zoo", 2, "on", WAY_BACK)
    assert on["until"] is not None
    assert on["forecast_requests"] == 900
    assert (on["lowest_satisfaction"], on["highest_satisfaction"]) == (0.78, 0.84)
    assert (on["forecast_satisfaction"], on["satisfaction"]) == (0.81, 0.6)
    assert (on["forecast_cost"], on["lowest_cost"], on["cost"]) == (None, None, 0.25)
    assert on["requests"] == 120
    assert canary["forecast_satisfaction"] is canary["satisfaction"] is canary["until"] is None
