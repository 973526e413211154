"""A deployment that names where its energy was to be measured in service is refused."""

from pathlib import Path

import pytest

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.prices import deployment_price
from litellm_messplus.settings.schema import ZooSettings
from tests.support.profiles import write_profile

ZOO = ZooSettings.model_validate({"alpha": 0.7, "cost_unit": "joule"})


@pytest.mark.parametrize(("key", "given"), [("zeusd", "gpu-1:4938"), ("gpus", [0])])
def test_it_is_told_to_use_its_profile_alone(tmp_path: Path, key: str, given: object) -> None:
    profile = write_profile(tmp_path / "mine.yaml", sensors=("gpu 0",))
    with pytest.raises(ConfigurationError) as caught:
        deployment_price(
            {
                "model_name": "zoo",
                "litellm_params": {"model": "hosted_vllm/mine"},
                "model_info": {"messplus": {"energy_profile": profile, key: given}},
            },
            ZOO,
        )
    assert caught.value.key == f"model_list, zoo (hosted_vllm/mine), model_info.messplus.{key}"
    assert caught.value.given == given
    assert caught.value.allowed == "`energy_profile`: what `messplus profile` has measured"
