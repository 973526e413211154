"""What a deployment may say of where its energy is measured."""

import sys
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.prices import (
    EnergySource,
    measured_deployment,
    measured_deployments,
)
from litellm_messplus.settings.schema import ZooSettings
from tests.support.profiles import PROMPT, write_profile

ZOO = ZooSettings.model_validate({"alpha": 0.7, "cost_unit": "joule"})


def deployment(**messplus: Any) -> dict[str, Any]:
    return {
        "model_name": "zoo",
        "litellm_params": {"model": "hosted_vllm/mine"},
        "model_info": {"id": "an id", "messplus": messplus},
    }


@pytest.fixture
def profile(tmp_path: Path) -> str:
    return write_profile(tmp_path / "mine.yaml", sensors=("gpu 0",))


def refusal(**messplus: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        measured_deployment(deployment(**messplus))
    return caught.value


def test_a_profile_alone_is_not_measured(profile: str) -> None:
    assert measured_deployment(deployment(energy_profile=profile)) is None


def test_it_names_a_daemon_and_its_gpus(profile: str) -> None:
    found = measured_deployment(deployment(energy_profile=profile, zeusd="gpu-1:5000", gpus=[3]))

    assert found is not None
    assert found.source == EnergySource("gpu-1:5000", (3,), with_cpu=False)
    assert found.profile.joules_per_prompt_token == PROMPT


def test_one_daemon_spelled_in_two_ways_is_one_source(profile: str) -> None:
    found = [
        measured_deployment(deployment(energy_profile=profile, zeusd=address, gpus=[0]))
        for address in ("gpu-1", "gpu-1:4938")
    ]

    assert found[0] == found[1]


def test_processors_are_counted_where_the_profile_counts_them(tmp_path: Path) -> None:
    both = write_profile(tmp_path / "mine.yaml", sensors=("gpu 0", "gpu 1", "cpu 0"))
    found = measured_deployment(deployment(energy_profile=both, zeusd="gpu-1", gpus=[1, 0]))

    assert found is not None
    assert found.source == EnergySource("gpu-1:4938", (0, 1), with_cpu=True)


def test_a_daemon_without_a_profile_is_refused() -> None:
    error = refusal(zeusd="gpu-1", gpus=[0], joules_per_prompt_token=1.0)

    assert error.key == "model_list, zoo (hosted_vllm/mine), model_info.messplus.zeusd"
    assert (error.given, error.allowed) == (
        "gpu-1",
        "together with an `energy_profile`, which it follows",
    )


def test_gpus_without_a_daemon_are_refused(profile: str) -> None:
    assert refusal(energy_profile=profile, gpus=[0]).key.endswith("model_info.messplus.gpus")


@pytest.mark.parametrize("address", ["gpu-1:port", ":4938", 4938])
def test_what_is_no_address_is_refused(profile: str, address: object) -> None:
    error = refusal(energy_profile=profile, zeusd=address, gpus=[0])

    assert (error.given, error.allowed) == (address, "HOST or HOST:PORT of a zeusd daemon")


@pytest.mark.parametrize("gpus", [0, ["0"], [-1], [True], "0"], ids=repr)
def test_what_is_no_list_of_gpus_is_refused(profile: str, gpus: object) -> None:
    error = refusal(energy_profile=profile, zeusd="gpu-1", gpus=gpus)

    assert (error.given, error.allowed) == (
        gpus,
        "a list of GPUs by zeusd's numbers, such as [0]",
    )


@pytest.mark.parametrize("gpus", [None, [], [0, 1], [0, 0, 1]], ids=repr)
def test_other_gpus_than_the_profiles_are_refused(profile: str, gpus: object) -> None:
    """The idle power of one GPU is not that of two."""
    error = refusal(energy_profile=profile, zeusd="gpu-1", gpus=gpus)

    assert error.allowed == "the 1 on which the profile was measured, by zeusd's numbers"


def test_without_zeus_the_proxy_does_not_start_and_says_what_to_install(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zeus.utils.zeusd", None)
    measured = deployment(energy_profile=profile, zeusd="gpu-1", gpus=[0])

    with pytest.raises(ConfigurationError, match=r"pip install 'litellm-messplus\[energy\]'"):
        measured_deployments({"zoo"}, [measured])


def test_deployments_outside_the_zoos_and_zoos_without_a_daemon_need_no_zeus(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zeus.utils.zeusd", None)
    measured = deployment(energy_profile=profile, zeusd="gpu-1", gpus=[0])

    assert measured_deployments({"another"}, [measured]) == []
    assert measured_deployments({"zoo"}, [deployment(energy_profile=profile)]) == []


def test_a_deployment_that_comes_later_with_a_wrong_daemon_does_not_stop_routing(
    profile: str,
) -> None:
    index = DeploymentIndex()

    index.see("zoo", [deployment(energy_profile=profile, zeusd="gpu-1", gpus=[0, 1])], ZOO)

    assert set(index.candidates_of["zoo"]) == {"an id"}
    assert index.measured == {}
