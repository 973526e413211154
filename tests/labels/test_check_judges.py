"""A judge that cannot be one is refused at the start, with what is allowed."""

from typing import Any

import pytest

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.judges import check_judges
from litellm_messplus.settings.load import load_settings

PRICE = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}


def deployment(name: str, info: dict[str, Any] | None = None) -> dict[str, Any]:
    params = {"model": f"openai/of-{name}", "api_base": "http://127.0.0.1:9/v1"}
    return {"model_name": name, "litellm_params": params, "model_info": info or {}}


def check(judge: dict[str, Any], *deployments: dict[str, Any]) -> None:
    zoos = {"llama": {"alpha": 0.7, "label_rate": 0.1, "buy_labels": judge}, "qwen": {"alpha": 0.7}}
    known = [deployment("llama", PRICE), deployment("qwen", PRICE), *deployments]
    check_judges(load_settings({"messplus": {"zoos": zoos}}), known)


@pytest.mark.parametrize("model", ["nobody", "llama", "qwen"])
def test_it_must_be_in_the_model_list_and_no_zoo(model: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check({"judge": model}, deployment("critic"), deployment("another"))

    assert refused.value.key == "messplus.zoos.llama.buy_labels.judge"
    assert refused.value.given == model
    assert "there: another, critic" in refused.value.allowed


def test_where_there_is_nobody_else_that_is_said() -> None:
    with pytest.raises(ConfigurationError, match="there: none"):
        check({"judge": "critic"})


def test_dollars_cannot_be_counted_without_a_price() -> None:
    judge = {"judge": "critic", "budget_per_day": 2.0}
    with pytest.raises(ConfigurationError) as refused:
        check(judge, deployment("critic", PRICE), deployment("critic"))

    assert refused.value.key == "messplus.zoos.llama.buy_labels.budget_per_day"
    assert "input_cost_per_token" in refused.value.allowed
    check(judge, deployment("critic", PRICE))


def test_without_a_budget_in_dollars_no_price_is_needed() -> None:
    check({"judge": "critic"}, deployment("critic"))
