"""Which promise a request counts towards: its key's, or that of the level that it asks for."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain.arms import granted_level, service_level
from litellm_messplus.brain.messages import HEADER, WantedLevel
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError, RefusedError
from litellm_messplus.serving.surfaces.identity import wanted_level
from litellm_messplus.serving.surfaces.request import IncomingRequest, read_request
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.tables import requests
from tests.support.builders import build_zoo
from tests.support.in_process import written
from tests.support.journey import arguments_of, journey

GOLD, SILVER = {"messplus_service_level": "gold"}, {"messplus_service_level": "silver"}


@pytest.fixture
def zoo() -> Zoo:
    return build_zoo(service_levels={"gold": {"alpha": 0.99}, "silver": {"alpha": 0.7}})


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"user_api_key_metadata": GOLD}, "gold"),
        ({"user_api_key_team_metadata": SILVER}, "silver"),
        ({"user_api_key_metadata": GOLD, "user_api_key_team_metadata": SILVER}, "gold"),
        ({"user_api_key_metadata": {}, "user_api_key_team_metadata": SILVER}, "silver"),
        ({"user_api_key_metadata": None, "user_api_key_team_metadata": None}, "default"),
        ({"user_api_key_metadata": {"messplus_service_level": "default"}}, "default"),
        ({"user_api_key_metadata": "gold"}, "default"),
        ({}, "default"),
    ],
)
def test_the_keys_level_then_the_teams_then_the_zoos_own(
    zoo: Zoo, counters: Counters, metadata: dict[str, Any], expected: str
) -> None:
    assert service_level(zoo, stated(metadata), counters) == zoo.levels[expected]
    assert counters.as_dict() == {}


def test_what_the_client_sends_does_not_count(zoo: Zoo, counters: Counters) -> None:
    sent = {**GOLD, "requester_metadata": GOLD, "metadata": GOLD, "tags": ["gold"]}
    assert service_level(zoo, stated(sent), counters).name == "default"


def test_an_unknown_name_gets_the_default_and_is_counted_and_logged(
    zoo: Zoo, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = {"user_api_key_metadata": {"messplus_service_level": "glod"}}
    assert service_level(zoo, stated(metadata), counters).name == "default"
    assert counters.as_dict() == {"unknown_service_levels": 1}
    assert "'glod'" in caplog.text


def test_a_level_has_every_value_filled_in(zoo: Zoo, counters: Counters) -> None:
    found = service_level(zoo, stated({"user_api_key_metadata": GOLD}), counters)
    assert found == ServiceLevel(name="gold", alpha=0.99, V=zoo.settings.V, c=zoo.settings.c)


# A level by request.

LEVELS: dict[str, Any] = {"service_levels": {"gold": {"alpha": 0.95}, "batch": {"alpha": 0.5}}}
MAY_GOLD = {"messplus_callers_may": ["gold"]}


def stated(metadata: dict[str, Any]) -> WantedLevel:
    return wanted_level(asking(**metadata))


def asking(call_type: str = "acompletion", **metadata: Any) -> IncomingRequest:
    found = read_request([], arguments_of(call_type=call_type, metadata=metadata))
    assert found is not None
    return found


def by_header(level: str) -> dict[str, Any]:
    return {"headers": {HEADER: level}}


def granted(metadata: dict[str, Any], counters: Counters, own: str = "default") -> ServiceLevel:
    """Where every key may choose `batch`."""
    zoo = build_zoo(**LEVELS, callers_may=["batch"])
    return granted_level(zoo, zoo.levels[own], stated(metadata), counters)


@pytest.mark.parametrize(
    ("metadata", "level"),
    [
        (by_header("batch"), "batch:asked"),
        ({"messplus_service_level": "batch"}, "batch:asked"),
        (by_header("batch") | {"messplus_service_level": "gold"}, "batch:asked"),
        ({"user_api_key_metadata": MAY_GOLD} | by_header("gold"), "gold:asked"),
        ({"user_api_key_team_metadata": MAY_GOLD} | by_header("gold"), "gold:asked"),
        (
            {"user_api_key_metadata": {"messplus_callers_may": "gold"}} | by_header("gold"),
            "gold:asked",
        ),
    ],
)
def test_a_request_gets_the_level_that_its_key_may_choose(
    counters: Counters, metadata: dict[str, Any], level: str
) -> None:
    assert granted(metadata, counters).name == level
    assert counters.as_dict() == {}


@pytest.mark.parametrize(
    "metadata",
    [
        by_header("gold"),
        {"user_api_key_metadata": MAY_GOLD} | by_header("batch"),
        {
            "user_api_key_metadata": {"messplus_callers_may": []},
            "user_api_key_team_metadata": MAY_GOLD,
        }
        | by_header("gold"),
        {"user_api_key_metadata": {"messplus_callers_may": False}} | by_header("batch"),
        MAY_GOLD | by_header("gold"),
    ],
)
def test_one_it_may_not_choose_is_counted(counters: Counters, metadata: dict[str, Any]) -> None:
    assert granted(metadata, counters).name == "default"
    assert counters.as_dict() == {"asked_in_vain": 1}


@pytest.mark.parametrize("sent", ["glod", "x" * 10_000, True, 7, [], {"a": "\x00"}])
def test_a_level_that_the_zoo_does_not_have_is_refused(counters: Counters, sent: Any) -> None:
    may = {"user_api_key_metadata": {"messplus_callers_may": ["glod", "True"]}}
    with pytest.raises(RefusedError, match="allowed: default, gold, batch") as caught:
        granted(may | {"messplus_service_level": sent}, counters)
    assert len(str(caught.value)) < 200
    assert "\x00" not in str(caught.value)


def test_who_asks_for_nothing_or_its_own_level_has_that(counters: Counters) -> None:
    assert granted({}, counters, own="gold").name == "gold"
    assert granted(by_header("gold"), counters, own="gold").name == "gold"
    assert counters.as_dict() == {}


def test_a_level_is_read_on_every_surface(counters: Counters) -> None:
    zoo = build_zoo(**LEVELS, callers_may=["batch"])
    for call_type in ("acompletion", "anthropic_messages", "aresponses", "atext_completion"):
        wanted = wanted_level(asking(call_type, **by_header("batch")))
        assert granted_level(zoo, zoo.levels["default"], wanted, counters).name == "batch:asked"


def test_the_promise_to_those_who_ask_is_that_of_the_level() -> None:
    zoo = build_zoo(**LEVELS)
    for name, level in zoo.levels.items():
        asked = zoo.streams[f"{name}:asked"]
        assert asked.model_dump(exclude={"name"}) == level.model_dump(exclude={"name"})


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"callers_may": ["max_cost"]}, "callers_may: given ['max_cost']; allowed: default"),
        ({"callers_may": "gold"}, "callers_may: given 'gold'; allowed: a list"),
        ({"service_levels": {"gold:asked": {"alpha": 0.9}}}, "no service level 'gold:asked'"),
    ],
)
def test_what_none_could_ask_for_is_refused_at_the_start(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"messplus": {"zoos": {"zoo": {"alpha": 0.7, **given}}}})
    assert word in str(caught.value)


async def test_what_was_asked_counts_in_a_stream_of_its_own(tmp_path: Path) -> None:
    async with journey(tmp_path, {**LEVELS, "callers_may": ["gold"]}) as worker:
        await worker.ask(metadata={"user_api_key_hash": "key", **by_header("gold")})
        await worker.ask(metadata={"user_api_key_hash": "key"})
        await worker.settled()

    asked, plain = await written(tmp_path, requests)
    assert (asked.service_level, asked.alpha, asked.t) == ("gold:asked", 0.95, 1)
    assert (plain.service_level, plain.alpha, plain.t) == ("default", 0.8, 1)
