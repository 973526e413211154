"""The proxy's own pruning: a process is started for it, and its output is counted and reported."""

import logging
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.serving.retention import Retention
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.pruning import alone
from tests.support.aged_log import history, write
from tests.support.builders import build_zoo


def settings_of(database: str = "sqlite+aiosqlite:///x.db", **retention: Any) -> MessplusSettings:
    section = {"zoos": {"zoo": {"alpha": 0.6}}, "database": database, "retention": retention}
    return load_settings({"messplus": section})


async def requests_in(database: AsyncEngine) -> int:
    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT COUNT(*) FROM requests")
        return int(found.scalar_one())


async def test_what_is_older_is_pruned_by_a_process(
    database: AsyncEngine, database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await write(database, build_zoo(), history(72))
    counters = Counters()
    settings = settings_of(database_url, keep_days=39, archive=str(tmp_path / "archive"))
    with caplog.at_level(logging.INFO, logger="litellm_messplus"):
        await Retention(settings, counters).look()
    assert counters.as_dict() == {"retention_runs": 1}
    assert 40 < await requests_in(database) < 50
    assert "pruned 2" in caplog.text
    assert any((tmp_path / "archive" / "requests").iterdir())


async def test_what_is_held_back_is_reported(
    database: AsyncEngine, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await log.append(database, history(10))
    await Retention(settings_of(database_url, keep_days=20), Counters()).look()
    assert "older requests of zoo stay in the log" in caplog.text


async def test_a_failure_is_counted_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Counters()
    missing = f"sqlite+aiosqlite:///{tmp_path}/missing.db"
    await Retention(settings_of(missing, keep_days=20), counters).look()
    assert counters.as_dict() == {"retention_failures": 1}
    assert "there is no database at" in caplog.text


async def test_while_another_worker_prunes_nothing_is_done(
    database: AsyncEngine, database_url: str
) -> None:
    counters = Counters()
    async with alone(database):
        await Retention(settings_of(database_url, keep_days=20), counters).look()
    assert counters.as_dict() == {}


async def test_without_the_section_nothing_is_started() -> None:
    settings = load_settings({"messplus": {"zoos": {"zoo": {"alpha": 0.6}}}})
    periodic = Periodic(Counters())
    Retention(settings, Counters()).start(periodic)
    assert len(periodic) == 0


@pytest.mark.parametrize(
    ("given", "key", "allowed"),
    [
        ({"keep_days": 30, "drop": True}, "messplus.retention.drop", "without an `archive`"),
        ({"keep_days": 0}, "messplus.retention.keep_days", "greater than or equal"),
        ({"archive": "x"}, "messplus.retention.keep_days", "required"),
        ({"keep_day": 3}, "messplus.retention.keep_day", "keep_days"),
    ],
)
def test_bad_settings_are_named(given: dict[str, Any], key: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError, match=allowed) as refused:
        settings_of(**given)
    assert refused.value.key in (key, "messplus.retention.keep_days")
