"""What passes here passes with the configuration that operators start from."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tests.vllm.operator_config import PATIENT, STAND_INS, ZOO, operators_config, tiny_zoo_config

MAY_DIFFER = {"litellm_params.model", "litellm_params.api_base"}
URLS = {name: f"http://127.0.0.1:{port}" for port, name in enumerate(STAND_INS.values(), 9001)}


def leaves(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value that is no mapping or list, by its path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def test_the_configuration_is_the_operators_own_but_for_names_ports_and_patience() -> None:
    ours, theirs = dict(leaves(tiny_zoo_config(URLS))), dict(leaves(operators_config()))

    assert ours.pop(("messplus", "deadline_seconds")) == PATIENT
    assert theirs.pop(("messplus", "zoos", ZOO, "labels")) == "auto"  # tiny models judge nothing
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    assert {".".join(map(str, path[2:])) for path in differing} == MAY_DIFFER
    assert {path[0] for path in differing} == {"model_list"}


def test_providers_and_paths_stay_and_replicas_stay_replicas() -> None:
    ours, theirs = tiny_zoo_config(URLS)["model_list"], operators_config()["model_list"]

    for mine, original in zip(ours, theirs, strict=True):
        params, originals = mine["litellm_params"], original["litellm_params"]
        assert params["model"].split("/")[0] == originals["model"].split("/")[0]
        assert urlsplit(params["api_base"]).path == urlsplit(originals["api_base"]).path
    models = [deployment["litellm_params"]["model"] for deployment in ours]
    originals = [deployment["litellm_params"]["model"] for deployment in theirs]
    assert [models.index(model) for model in models] == [
        originals.index(model) for model in originals
    ]
    assert len(set(models)) == len(STAND_INS)
