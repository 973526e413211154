"""What LiteLLM charges for a call to a deployment, in USD, as far as it can be known before."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import litellm
from litellm.types.utils import CustomPricingLiteLLMParams

from litellm_messplus.costs.price import Price
from litellm_messplus.costs.rates import CACHED, PROMPT, price_of_rates, states_a_price
from litellm_messplus.proxy.deployments import Deployment, model_info, own_info

OWN_RATES = frozenset(CustomPricingLiteLLMParams.model_fields)
"""The keys by which a deployment has a price of its own at LiteLLM."""


def stated_dollars(deployment: Deployment) -> Price | None:
    """What the operator's configuration says; None where it says nothing.

    As at LiteLLM: `litellm_params` goes before `model_info`, one price that is stated hides all of
    the price map, and only the discount on cached tokens is taken from there. LiteLLM has no price
    for each request of a chat; ours is added to what it charges.

    Raises TypeError or ValueError for what is no number.
    """
    rates = {
        name: value
        for source in (model_info(deployment), deployment["litellm_params"])
        for name, value in source.items()
        if name in OWN_RATES and value is not None
    }
    request = own_info(deployment).get("cost_per_request")
    if states_a_price(rates):
        if rates.get(PROMPT) is not None and rates.get(CACHED) is None:
            rates[CACHED] = _public_rates(deployment).get(CACHED)
        price = price_of_rates(rates)
    else:
        price = None if request is None else public_dollars(deployment) or Price()
    return replace(price, request=float(request or 0.0)) if price is not None else None


def public_dollars(deployment: Deployment) -> Price | None:
    """What LiteLLM's price map says, which knows the public providers' models."""
    return price_of_rates(_public_rates(deployment))


def is_free(identity: str) -> bool:
    """Whether the operator has stated a price of zero for LiteLLM's deployment of that id."""
    return price_of_rates(litellm.model_cost.get(identity) or {}) == Price()


def _public_rates(deployment: Deployment) -> Mapping[str, Any]:
    """The entry of the price map; empty for a model that is not there.

    The entry itself and not LiteLLM's view of it, in which a missing price is zero: its router
    gives every model that it serves an entry, most of them without a price.
    """
    params = deployment["litellm_params"]
    base = params.get("base_model") or model_info(deployment).get("base_model")
    try:
        model, provider, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider"), params.get("api_base")
        )
        found = litellm.get_model_info(model=base or model, custom_llm_provider=provider)
    except Exception:  # it raises a bare Exception for a model that it does not know
        return {}
    return litellm.model_cost.get(found["key"]) or {}
