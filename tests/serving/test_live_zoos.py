"""A zoo follows LiteLLM's router: models that come, cost another price, are others under the same
id, or go."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.store.tables import candidate_events
from tests.support.in_process import written
from tests.support.journey import Routed, routed
from tests.support.journey import live as deployment

Patch = pytest.MonkeyPatch
SMALL, LARGE, NEW = deployment("small", 1e-6), deployment("large", 1e-5), deployment("new", 1e-7)
BOTH = (SMALL, LARGE)


async def changes(folder: Path) -> list[tuple[str, str]]:
    return [(each.candidate, each.change) for each in await written(folder, candidate_events)]


def there(live: Routed) -> list[str]:
    return list(live.engine.zoo.present)


async def test_no_change_reports_nothing(tmp_path: Path, monkeypatch: Patch) -> None:
    replicas = [deployment("small", price, id=f"s{price}") for price in (1e-6, 3.3e-7, 7.7e-7)]
    async with routed(tmp_path, monkeypatch, [*replicas, LARGE]) as live:
        await live.choose()
        await live.swept()
        assert live.engine.zoo.candidates == ("openai/small", "openai/large")

    assert await changes(tmp_path) == []


async def test_an_added_model_is_soon_a_candidate(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        await live.swept()
        live.put(NEW)
        await live.swept()

        assert live.engine.zoo.present == ("openai/small", "openai/large", "openai/new")
        assert "new" in await live.choose()
        assert "routing_failures" not in live.counters

    assert await changes(tmp_path) == [("openai/new", "appeared")]


async def test_a_newcomer_alone_is_served_at_once(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        await live.swept()
        live.put(NEW)
        for gone in ("small", "large"):
            live.remove(gone)

        assert await live.choose() == ["new"]
        assert live.counters.get("candidates_unknown") == 1
        assert "routing_failures" not in live.counters


async def test_an_edited_price_counts_for_the_next(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        await live.swept()
        assert live.engine.zoo.prices["openai/small"].prompt == 1e-6

        live.put(deployment("small", 4e-6))
        await live.choose()

        assert live.engine.zoo.prices["openai/small"].prompt == 4e-6
        await live.swept()

    assert await changes(tmp_path) == [("openai/small", "priced")]


async def test_another_model_of_an_id_is_another(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        await live.swept()
        live.put(deployment("other", 1e-6, id="small"))
        await live.swept()

        assert live.engine.zoo.present == ("openai/large", "openai/other")
        assert live.plugin.parts.served.index.candidate("zoo", "small") == "openai/other"

    assert sorted(await changes(tmp_path)) == [
        ("openai/other", "appeared"),
        ("openai/small", "gone"),
    ]


async def test_a_removed_model_returns_with_its_lessons(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, [SMALL, LARGE, NEW]) as live:
        await live.swept()
        live.remove("new")
        await live.swept()
        assert there(live) == ["openai/small", "openai/large"]
        assert list(live.engine.zoo.candidates) == [*there(live), "openai/new"]

        live.put(NEW)
        await live.swept()
        assert there(live) == list(live.engine.zoo.candidates)

    assert await changes(tmp_path) == [("openai/new", "gone"), ("openai/new", "appeared")]


async def test_a_dear_newcomer_is_no_yardstick(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        await live.swept()
        live.put(deployment("huge", 1e-3))
        await live.swept()
        assert live.engine.zoo.largest == "openai/large"

        live.remove("large")
        await live.swept()
        assert live.engine.zoo.largest == "openai/huge"

        live.put(LARGE)
        await live.swept()
        assert live.engine.zoo.largest == "openai/large"


async def test_an_unpriced_newcomer_is_left_out_counted(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, BOTH) as live:
        unpriced = {**deployment("nobody-knows", 0.0), "model_info": {"id": "unpriced"}}
        live.put(unpriced)
        await live.swept()
        await live.choose()
        assert "openai/nobody-knows" not in live.engine.zoo.candidates
        assert live.counters["candidates_unpriced"] == 1


OWN = deployment(
    "own", 1e-6, group="model_name_t_1", team_id="t", team_public_model_name="zoo", id="team"
)

TEAM = {"user_api_key_hash": "key", "user_api_key_team_id": "t"}


async def test_models_of_a_team_pass_through(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, [SMALL, LARGE, OWN]) as live:
        assert await live.choose(metadata=TEAM) == ["team"]
        assert live.counters == {"team_requests": 1}
        assert live.engine.zoo.candidates == ("openai/small", "openai/large")


STORED: dict[str, Any] = {"general_settings": {"store_model_in_db": True}}


async def test_a_zoo_waits_for_models_of_the_database(tmp_path: Path, monkeypatch: Patch) -> None:
    async with routed(tmp_path, monkeypatch, [SMALL], config=STORED) as live:
        await live.swept()
        assert live.engine.zoo.is_waiting
        assert await live.choose() == ["small"]
        assert live.counters == {"zoos_waiting": 1}

        live.put(NEW)
        live.put(LARGE)
        await live.swept()
        assert live.engine.zoo.largest == "openai/large"
        await live.choose()
        await live.swept()
        live.put(deployment("huge", 1e-3))
        await live.swept()
        assert live.engine.zoo.largest == "openai/large"
        assert live.counters == {"zoos_waiting": 1}


async def test_a_zoo_of_the_database_alone_begins_later(tmp_path: Path, monkeypatch: Patch) -> None:
    other = deployment("other", 1e-6, group="elsewhere")
    async with routed(tmp_path, monkeypatch, [other], config=STORED) as live:
        for given in (SMALL, LARGE):
            live.put(given)
        await live.swept()
        for _ in range(3):
            await live.choose()
        assert live.counters == {}
        assert live.engine.newest["default"].chosen in ("openai/small", "openai/large")


async def test_a_routing_group_is_a_zoo_of_its_members(tmp_path: Path, monkeypatch: Patch) -> None:
    members = [deployment("small", 1e-6, group="a"), deployment("large", 1e-5, group="b")]
    groups = [{"group_name": "zoo", "models": ["a", "b"], "routing_strategy": "simple-shuffle"}]
    async with routed(tmp_path, monkeypatch, members, routing_groups=groups) as live:
        await live.swept()
        live.put(deployment("new", 1e-7, group="b"))
        await live.swept()
        assert live.engine.zoo.present == ("openai/small", "openai/large", "openai/new")
        assert await live.choose()
        assert live.counters == {}


async def test_two_workers_that_see_it_write_one_row(tmp_path: Path, monkeypatch: Patch) -> None:
    async with (
        routed(tmp_path, monkeypatch, BOTH) as first,
        routed(tmp_path, monkeypatch, BOTH) as second,
    ):
        for live in (first, second):
            await live.swept()
        first.put(NEW)
        first.remove("large")
        await first.swept()
        await second.swept()  # LiteLLM has not told it yet
        assert same_zoos(first, second)
        assert await changes(tmp_path) == [("openai/new", "appeared"), ("openai/large", "gone")]

        second.put(NEW)
        second.remove("large")
        await second.swept()
        await first.swept()
        assert same_zoos(first, second)
    assert await changes(tmp_path) == [("openai/new", "appeared"), ("openai/large", "gone")]


def same_zoos(first: Routed, second: Routed) -> bool:
    one, other = first.engine.zoo, second.engine.zoo
    return (one.candidates, one.present) == (other.candidates, other.present)
