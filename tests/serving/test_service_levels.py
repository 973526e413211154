"""Which promise a request counts towards."""

from typing import Any

import pytest

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.reading import service_level
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.zoo import Zoo
from tests.support.builders import build_zoo

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
    assert service_level(zoo, metadata, counters) == zoo.levels[expected]
    assert counters.as_dict() == {}


def test_what_the_client_sends_does_not_count(zoo: Zoo, counters: Counters) -> None:
    sent = {**GOLD, "requester_metadata": GOLD, "metadata": GOLD, "tags": ["gold"]}
    assert service_level(zoo, sent, counters).name == "default"


def test_an_unknown_name_gets_the_default_and_is_counted_and_logged(
    zoo: Zoo, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = {"user_api_key_metadata": {"messplus_service_level": "glod"}}
    assert service_level(zoo, metadata, counters).name == "default"
    assert counters.as_dict() == {"unknown_service_levels": 1}
    assert "'glod'" in caplog.text


def test_a_level_has_every_value_filled_in(zoo: Zoo, counters: Counters) -> None:
    found = service_level(zoo, {"user_api_key_metadata": GOLD}, counters)
    assert found == ServiceLevel(name="gold", alpha=0.99, V=zoo.settings.V, c=zoo.settings.c)
