"""The mode of a zoo in the configuration, and refusals that say what is allowed."""

from typing import Any

import pytest

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import Arm, Mode, ZooMode
from tests.support.in_process import DEPLOYMENTS


def built(**zoo: Any) -> ZooMode:
    config = {"messplus": {"zoos": {"zoo": {"alpha": 0.9, **zoo}}}}
    return build_zoos(load_settings(config), DEPLOYMENTS)["zoo"].settings.zoo_mode


def test_a_zoo_is_on_and_has_no_way_back_unless_told_otherwise() -> None:
    assert built() == ZooMode(Mode.ON, before=None)
    assert not built().can_return


def test_yaml_reads_on_as_a_yes() -> None:
    assert built(mode=True).mode is Mode.ON


MEMBERS = [{**given, "model_name": name} for given, name in zip(DEPLOYMENTS, "ab", strict=True)]
GROUPS = {"zoo": ("a", "b")}


def of_groups(before: str) -> Zoo:
    config = {"messplus": {"zoos": {"zoo": {"alpha": 0.9, "mode": "watch", "before": before}}}}
    return build_zoos(load_settings(config), MEMBERS, GROUPS)["zoo"]


def test_a_member_of_a_routing_group_may_have_served_before() -> None:
    assert of_groups("group:b").groups == ("a", "b")


@pytest.mark.parametrize("before", ["group:c", "group:zoo", "b"])
def test_a_group_that_is_no_member_stops_the_start(before: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of_groups(before)
    assert caught.value.key == "messplus.zoos.zoo.before"
    assert f"given '{before}'" in str(caught.value)
    assert "openai/small, openai/large, group:a, group:b" in str(caught.value)


def test_a_zoo_that_is_a_model_name_has_no_members() -> None:
    with pytest.raises(ConfigurationError, match="given 'group:zoo'"):
        built(mode="watch", before="group:zoo")


@pytest.mark.parametrize("before", ["litellm", "openai/small"])
def test_what_served_before_is_litellm_or_a_candidate(before: str) -> None:
    assert built(mode="watch", before=before).before == before


@pytest.mark.parametrize(
    ("zoo", "expected"),
    [
        ({"mode": "watch"}, "given 'nothing, under `mode: watch`'"),
        ({"mode": "canary"}, "given 'nothing, under `mode: canary`'"),
        ({"before": "openai/medium"}, "given 'openai/medium'"),
    ],
)
def test_nothing_to_serve_as_before_stops_the_start(zoo: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        built(**zoo)
    assert caught.value.key == "messplus.zoos.zoo.before"
    assert expected in str(caught.value)
    assert "litellm, or what served before: " in str(caught.value)
    assert "openai/small, openai/large" in str(caught.value)


def test_what_is_held_out_needs_something_that_serves_it() -> None:
    with pytest.raises(ConfigurationError, match="`before` with `holdout`"):
        built(holdout=0.1)
    assert built(holdout=0.1, before="litellm").holdout == 0.1


def test_a_conversation_that_the_largest_canary_routes_is_never_held_out_later() -> None:
    draws = [place / 1000 for place in range(1000)]
    canary = ZooMode(Mode.CANARY, 0.9, "litellm", holdout=0.1)
    on = ZooMode(Mode.ON, before="litellm", holdout=0.1)
    routed = {
        mode: {each for each in draws if mode.arm(each) is Arm.ROUTED} for mode in (canary, on)
    }
    assert routed[canary] == routed[on]
    assert len(routed[on]) == 900
    assert on.draws
    assert not ZooMode(Mode.ON, before="litellm").draws


@pytest.mark.parametrize(
    ("zoo", "key"),
    [
        ({"holdout": 0.6, "before": "litellm"}, "holdout"),
        ({"holdout": -0.1, "before": "litellm"}, "holdout"),
        ({"mode": "off"}, "mode"),
        ({"share": 0.0}, "share"),
        ({"share": 1.1}, "share"),
        ({"watch": {"sample": 2}}, "watch.sample"),
    ],
)
def test_values_that_mean_nothing_are_refused(zoo: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        built(**zoo)
    assert caught.value.key == f"messplus.zoos.zoo.{key}"


def test_no_service_level_has_the_name_of_a_stream() -> None:
    with pytest.raises(ConfigurationError, match="'gold:before'"):
        built(service_levels={"gold:before": {}})


def test_the_share_decides_under_canary_alone() -> None:
    drawn = [number / 100 for number in range(100)]
    arms = {
        mode: [ZooMode(mode, 0.25, "large").arm(draw) for draw in drawn].count(Arm.ROUTED)
        for mode in Mode
    }
    assert arms == {Mode.WATCH: 0, Mode.CANARY: 25, Mode.ON: 100}
