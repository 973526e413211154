"""The top-level `proxy_config.yaml` with the paper's models replaced by the tiny zoo's."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.support.proxy import Config

ROOT = Path(__file__).resolve().parents[2]
OPERATORS_CONFIG = ROOT / "proxy_config.yaml"
ZOO = "llama"
STAND_INS = {
    "meta-llama/Llama-3.2-1B-Instruct": "tiny-small",
    "meta-llama/Llama-3.1-8B-Instruct": "tiny-medium",
    "meta-llama/Llama-3.3-70B-Instruct": "tiny-large",
}
"""Which model of the tiny zoo is served in place of which of the paper's."""
PATIENT = 2.0
"""Seconds for a decision: three servers and a proxy on two cores make one late now and then, and a
request that is not routed takes no feedback."""


def tiny_zoo_config(urls: Mapping[str, str]) -> Config:
    """The same with the tiny zoo's names, and where each is served, by those names.

    A replica stays one: both of its deployments lead to the one server there is.
    """
    config: Config = yaml.safe_load(OPERATORS_CONFIG.read_text(encoding="utf-8"))
    for deployment in config["model_list"]:
        params = deployment["litellm_params"]
        provider, _, model = params["model"].partition("/")
        stand_in = STAND_INS[model]
        params.update(model=f"{provider}/{stand_in}", api_base=f"{urls[stand_in]}/v1")
    config["messplus"]["deadline_seconds"] = PATIENT
    config["messplus"]["zoos"][ZOO]["labels"] = {}  # the tiny models judge nothing
    return config
