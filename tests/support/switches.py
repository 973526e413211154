"""Changes of a zoo's mode, with a forecast and what happened."""

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
    "cost": {"estimate": 0.3, "low": 0.2, "high": 0.4},
}
HAPPENED = {"requests": 120, "answered": 90, "satisfaction": 0.6, "cost": 0.25}


LATER = NOW + timedelta(hours=1)
CHANGES = (
    replace(ROW, mode="watch"),
    replace(ROW, revision=2, mode="on", forecast=FORECAST),
    replace(ROW, revision=3, mode="watch", by=WAY_BACK, at=LATER, happened=HAPPENED),
    replace(ROW, revision=4, mode="canary", at=LATER, forecast=FORECAST | {"cost": None}),
)


async def change_modes(database: AsyncEngine) -> None:
    """Log the changes."""
    for row in CHANGES:
        assert await zoo_modes.append(database, row)
