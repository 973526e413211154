"""LiteLLM's deployments as a zoo: replicas grouped into candidates, and their prices."""

from collections.abc import Mapping, Sequence
from typing import Any

import litellm

from litellm_messplus.costs.price import CostUnit, TokenPrice, average
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.zoo import Zoo

Deployment = Mapping[str, Any]


def model_info(deployment: Deployment) -> Mapping[str, Any]:
    """LiteLLM's `model_info` of a deployment, empty where it has none."""
    return deployment.get("model_info") or {}


def own_info(deployment: Deployment) -> Mapping[str, Any]:
    """What `model_info.messplus` says; there, because LiteLLM sends unknown params upstream."""
    return model_info(deployment).get("messplus") or {}


def deployment_id(deployment: Deployment) -> str:
    """LiteLLM's id of a deployment."""
    return str(model_info(deployment).get("id"))


def candidate_of(deployment: Deployment) -> str:
    """The candidate that a deployment is a replica of: one model, however often it is served.

    Deployments of one `litellm_params.model` are replicas; `model_info.messplus.candidate` names
    the candidate where the models are spelled differently, or must be kept apart.
    """
    named = own_info(deployment).get("candidate")
    return str(named or deployment["litellm_params"]["model"])


def token_price(deployment: Deployment, unit: CostUnit) -> TokenPrice | None:
    """The deployment's price in the zoo's unit; None where nobody states one."""
    if unit is CostUnit.JOULE:
        return _stated(
            own_info(deployment), "joules_per_prompt_token", "joules_per_completion_token"
        )
    keys = ("input_cost_per_token", "output_cost_per_token")
    params: Mapping[str, Any] = deployment["litellm_params"]
    return (
        _stated(model_info(deployment), *keys)
        or _stated(params, *keys)
        or _from_price_map(deployment, *keys)
    )


def _stated(where: Mapping[str, Any], prompt: str, completion: str) -> TokenPrice | None:
    if where.get(prompt) is None and where.get(completion) is None:
        return None
    return TokenPrice(float(where.get(prompt) or 0.0), float(where.get(completion) or 0.0))


def _from_price_map(deployment: Deployment, prompt: str, completion: str) -> TokenPrice | None:
    """LiteLLM's own price map, which knows the public providers' models."""
    params = deployment["litellm_params"]
    name = model_info(deployment).get("base_model") or params["model"]
    try:
        known: Mapping[str, Any] = litellm.get_model_info(
            model=name, custom_llm_provider=params.get("custom_llm_provider")
        )
    except Exception:  # it raises a bare Exception for a model that it does not know
        return None
    return _stated(known, prompt, completion)


def build_zoos(settings: MessplusSettings, model_list: Sequence[Deployment]) -> dict[str, Zoo]:
    """The configured zoos over the proxy's `model_list`.

    Raises ConfigurationError for a zoo without deployments or with one candidate, and for a
    deployment without a price.
    """
    return {name: _build_zoo(name, zoo, model_list) for name, zoo in settings.zoos.items()}


def _build_zoo(name: str, settings: ZooSettings, model_list: Sequence[Deployment]) -> Zoo:
    key = f"messplus.zoos.{name}"
    own = [deployment for deployment in model_list if deployment.get("model_name") == name]
    if not own:
        names = ", ".join(sorted({str(d.get("model_name")) for d in model_list})) or "none"
        raise ConfigurationError(key, name, f"a `model_name` of `model_list` (there: {names})")
    grouped: dict[str, list[TokenPrice]] = {}
    for deployment in own:
        price = _required_price(deployment, settings.cost_unit)
        grouped.setdefault(candidate_of(deployment), []).append(price)
    if len(grouped) < 2:
        only = ", ".join(grouped)
        raise ConfigurationError(
            key, f"one candidate ({only})", "at least two different models behind the name"
        )
    if settings.largest is not None and settings.largest not in grouped:
        raise ConfigurationError(f"{key}.largest", settings.largest, " or ".join(grouped))
    prices = {candidate: average(prices) for candidate, prices in grouped.items()}
    if settings.largest is None and len(set(prices.values())) == 1:
        raise ConfigurationError(
            f"{key}.largest", "nothing, and all prices are equal", " or ".join(prices)
        )
    return Zoo(name, settings, prices)


def _required_price(deployment: Deployment, unit: CostUnit) -> TokenPrice:
    try:
        price = token_price(deployment, unit)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(_price_key(deployment), str(error), "prices as numbers") from error
    if price is not None:
        if not min(price.prompt, price.completion) >= 0:  # which no comparison with NaN is
            raise ConfigurationError(_price_key(deployment), price, "prices of at least 0")
        return price
    needed = (
        "`joules_per_prompt_token` and `joules_per_completion_token` under `model_info.messplus`"
        if unit is CostUnit.JOULE
        else "`input_cost_per_token` and `output_cost_per_token` under `model_info` (0 is a price)"
    )
    raise ConfigurationError(_price_key(deployment), "no price", needed)


def _price_key(deployment: Deployment) -> str:
    name, model = deployment.get("model_name"), deployment["litellm_params"]["model"]
    return f"model_list, {name} ({model})"
