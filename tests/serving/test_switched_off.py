"""A client that switches routing off for one of its requests."""

from pathlib import Path
from typing import Any

import pytest
from litellm import BadRequestError

from litellm_messplus.store.database import create_engine
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.tables import outcomes, requests
from tests.support.in_process import url, written
from tests.support.journey import LARGE, SMALL, journey

KEY = {"user_api_key_hash": "key"}
OFF: dict[str, Any] = {"headers": {"x-messplus-route": "off"}, **KEY}
IN_METADATA: dict[str, Any] = {"messplus": {"route": "off"}, **KEY}


@pytest.mark.parametrize("metadata", [OFF, IN_METADATA], ids=["header", "metadata"])
async def test_the_largest_serves_unpromised(tmp_path: Path, metadata: dict[str, Any]) -> None:
    async with journey(tmp_path) as proxy:
        explored = proxy.explores_nothing()
        asked = await proxy.ask(metadata=dict(metadata))
        assert asked.ids == ["large"]
        await proxy.answers(asked)
        await proxy.settled()
        assert proxy.counters == {}
        assert proxy.engine.state.requests["default"] == 0
    (row,) = await written(tmp_path, requests)
    (outcome,) = await written(tmp_path, outcomes)
    assert (row.arm, row.reason, row.chosen) == ("off", "off", LARGE)
    assert (row.service_level, row.would_choose) == ("default:before", None)
    assert (outcome.status, outcome.served) == ("success", LARGE)
    assert not any(explored.called)


async def test_what_served_before_serves_where_it_is_named(tmp_path: Path) -> None:
    async with journey(tmp_path, {"mode": "on", "before": SMALL}) as proxy:
        asked = await proxy.ask(metadata=dict(OFF))
        assert asked.ids == ["small"]
        again = await proxy.ask(arguments=asked.failed_at("small"))
        assert again.ids == ["large"]
        await proxy.settled()
    assert len(await written(tmp_path, requests)) == 1


async def test_another_value_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with journey(tmp_path) as proxy:
        for metadata in (
            {"headers": {"x-messplus-route": "of"}, **KEY},
            {"messplus": {"route": False}, **KEY},
        ):
            with pytest.raises(BadRequestError, match="allowed: off, or nothing"):
                await proxy.ask(metadata=metadata)
        await proxy.settled()
    assert await written(tmp_path, requests) == []


async def test_a_zoo_that_is_watched_does_not_compare_it(tmp_path: Path) -> None:
    async with journey(tmp_path, {"mode": "watch", "before": LARGE}) as proxy:
        asked = await proxy.ask(metadata=dict(OFF))
        await proxy.answers(asked)
        await proxy.settled()
    database = create_engine(url(tmp_path))
    log = ObservedLog(database, "zoo", ["default"])
    assert await log.served(None) == []
    assert await log.aside() == []
    await database.dispose()
