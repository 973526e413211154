"""The proxy's own pruning, once a day: it is counted and reported."""

import logging
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.monitoring import Retention
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.serving import RetentionSettings
from litellm_messplus.store import log
from tests.support.aged_log import history, write
from tests.support.builders import build_zoo


async def requests_in(database: AsyncEngine) -> int:
    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT COUNT(*) FROM requests")
        return int(found.scalar_one())


async def test_what_is_older_is_pruned(
    database: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    await write(database, build_zoo(), history(72))
    counters = Counters()
    with caplog.at_level(logging.INFO, logger="litellm_messplus"):
        await Retention(database, RetentionSettings(keep_days=39), counters).look()
    assert counters.as_dict() == {"retention_runs": 1}
    assert 40 < await requests_in(database) < 50
    assert "pruned 2" in caplog.text


async def test_what_is_held_back_is_reported(
    database: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    await log.append(database, history(10))
    await Retention(database, RetentionSettings(keep_days=20), Counters()).look()
    assert "10 older requests stay in the log" in caplog.text


async def test_without_the_section_nothing_is_started(database: AsyncEngine) -> None:
    periodic = Periodic(Counters())
    Retention(database, None, Counters()).start(periodic)
    assert len(periodic) == 0


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"keep_days": 0}, "greater than or equal"),
        ({"keep_day": 3}, "keep_days"),
    ],
)
def test_bad_settings_are_named(given: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ConfigurationError, match=allowed):
        load_settings({"messplus": {"zoos": {"zoo": {"alpha": 0.6}}, "retention": given}})
