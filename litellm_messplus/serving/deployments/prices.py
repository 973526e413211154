"""The price of a deployment in its zoo's unit: LiteLLM's dollars, or energy and its sensors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import litellm

from litellm_messplus.costs.price import CostUnit, Price, Tier
from litellm_messplus.energy.profile import EnergyProfile, load_profile
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    model_info,
    own_info,
    place_of,
    upstream_model,
)
from litellm_messplus.serving.litellm_seam import OWN_RATES
from litellm_messplus.settings.load import FORMER
from litellm_messplus.settings.schema import ZooSettings

# LiteLLM's charge for a call to a deployment, in USD: what it answers when it is asked.

STATED = (
    *("input_cost_per_token", "output_cost_per_token", "tiered_pricing"),
    *("cost_per_second", "input_cost_per_second", "output_cost_per_second"),
)
"""LiteLLM's keys of which any one makes a price; that of a cached token alone does not."""
CACHED_FROM = "prompt_cache_min_tokens"
SHORT, LONG = 2**10, 2**19
"""Tokens of a prompt that is asked for: below and above the limits of all tiers. A cost divided by
a power of two is the price of a token to the digit."""

NUMBERS = count()
"""Numbers of what was asked: LiteLLM remembers what a name costs."""


def stated_dollars(deployment: Deployment) -> Price | None:
    """Ask for the price that the operator's configuration states; None if it states none.

    As in LiteLLM, `litellm_params` takes precedence over `model_info`, and any stated price hides
    the whole price map but its prices of cached and written tokens. LiteLLM has no price per chat
    request; ours is added to its charge.

    Raises TypeError or ValueError for a value that is not a number.
    """
    rates = {
        name: value if isinstance(value, list | dict) else number(value)
        for source in (model_info(deployment), deployment["litellm_params"])
        for name, value in source.items()
        if name in OWN_RATES and value is not None
    }
    request = own_info(deployment).get("cost_per_request")
    if _states_a_price(rates):
        price = _own_dollars(deployment, rates)
    elif request is not None:
        price = public_dollars(deployment) or Price()
    else:
        return None
    return replace(price, request=0.0 if request is None else number(request))


def _own_dollars(deployment: Deployment, rates: Mapping[str, Any]) -> Price:
    """Ask for the price of rates of the operator's own, under a name that is LiteLLM's for so
    long."""
    public = map_entry(deployment)
    if "input_cost_per_token" in rates:
        inherited = {name: rate for name, rate in public.items() if name.startswith("cache_")}
        rates = {**inherited, **rates}
    try:
        _, provider = model_and_provider(deployment)
    except Exception:  # a bare Exception for an unknown one
        provider = "openai"
    name = f"messplus-{next(NUMBERS)}"
    litellm.model_cost[name] = {**rates, "litellm_provider": provider, "mode": "chat"}
    try:
        price = _answered(name, provider)
    finally:
        del litellm.model_cost[name]
    known = (model_info(deployment).get(CACHED_FROM), public.get(CACHED_FROM))
    return replace(price, cached_from=next((number(one) for one in known if one is not None), 0.0))


def public_dollars(deployment: Deployment) -> Price | None:
    """Ask for the price of LiteLLM's price map, which lists the public providers' models."""
    entry = map_entry(deployment)
    if not _states_a_price(entry):
        return None
    model, provider = model_and_provider(deployment)
    price = _answered(model, provider, deployment["litellm_params"].get("service_tier"))
    return replace(price, cached_from=float(entry.get(CACHED_FROM) or 0.0))


def _answered(model: str, provider: str, service_tier: str | None = None) -> Price:
    """Ask LiteLLM what calls cost: short and long ones, cached and written ones."""

    def ask(tokens: int, answer: int = 0, seconds: float = 0.0, **part: int) -> tuple[float, float]:
        usage = litellm.Usage(
            prompt_tokens=tokens,
            completion_tokens=answer,
            total_tokens=tokens + answer,
            prompt_tokens_details=part or None,
        )
        prompt, completion = litellm.cost_per_token(
            model=model,
            custom_llm_provider=provider,
            usage_object=usage,
            prompt_tokens=tokens,
            completion_tokens=answer,
            response_time_ms=1000.0 * seconds,
            service_tier=service_tier,
        )
        return float(prompt), float(completion)

    def rates(tokens: int) -> Price:
        prompt, completion = (cost / tokens for cost in ask(tokens, tokens))
        cached, _ = ask(tokens, cached_tokens=tokens)
        written, _ = ask(tokens, cache_creation_tokens=tokens)
        return Price(
            prompt,
            completion,
            cached_discount=prompt - cached / tokens,
            written_surcharge=written / tokens - prompt,
        )

    short = rates(SHORT)
    if not short.prompt and not short.completion:
        return Price(second=sum(ask(0, seconds=1.0)))
    long = rates(LONG)
    if long == short:
        return short
    low, high = SHORT, LONG
    while high - low > 1:
        tokens = (low + high) // 2
        is_short = math.isclose(sum(ask(tokens, tokens)), short.of(tokens, tokens), rel_tol=1e-9)
        low, high = (tokens, high) if is_short else (low, tokens)
    return replace(short, tiers=(Tier(low, long),))


def known_dollars(deployment: Deployment) -> Price | None:
    """Return the operator's stated price, else that of the price map; None if neither is a
    price."""
    try:
        return stated_dollars(deployment) or public_dollars(deployment)
    except (TypeError, ValueError):
        return None


def is_free(identity: str) -> bool:
    """Tell whether the operator has stated a price of zero for LiteLLM's deployment of that id."""
    entry = litellm.model_cost.get(identity) or {}
    return _states_a_price(entry) and not any(entry.get(name) for name in OWN_RATES)


def _states_a_price(rates: Mapping[str, Any]) -> bool:
    """Tell whether a price is stated. Zero is a price; a key that is missing or None is not."""
    return any(rates.get(name) is not None for name in STATED)


def map_entry(deployment: Deployment) -> Mapping[str, Any]:
    """Look up a model's entry in the price map; empty if it has none.

    LiteLLM's view of the entry has zero for a missing price, and its router gives every served
    model an entry, mostly without a price; so the entry itself is read.
    """
    try:
        model, provider = model_and_provider(deployment)
        found = litellm.get_model_info(model=model, custom_llm_provider=provider)
    except Exception:  # a bare Exception for an unknown model
        return {}
    return litellm.model_cost.get(found["key"]) or {}


def model_and_provider(deployment: Deployment) -> tuple[str, str]:
    """Get both from LiteLLM; a stated `base_model` takes the model's place. Raises LiteLLM's
    exception for an unknown model."""
    params = deployment["litellm_params"]
    model, provider, _, _ = litellm.get_llm_provider(
        params["model"], params.get("custom_llm_provider"), params.get("api_base")
    )
    base = params.get("base_model") or model_info(deployment).get("base_model")
    return str(base or model), str(provider)


# The energy of a call to a deployment in joules, as the operator states or has measured it.

JOULES = ("joules_per_prompt_token", "joules_per_completion_token", "joules_per_request")
CACHED_JOULES = "joules_per_cached_token"
"""Joules of a token that was in the endpoint's cache; allowed in addition to a profile, which does
not measure it, and overrides a value written into one."""


def energy_price(deployment: Deployment) -> Price | None:
    """Read a price in joules, from the numbers or the profile that `model_info.messplus` names;
    else None.

    Raises ConfigurationError if both are given, and for a profile that cannot be used; TypeError or
    ValueError for a value that is not a number.
    """
    stated = [name for name in JOULES if own_info(deployment).get(name) is not None]
    if stated and own_info(deployment).get("energy_profile") is not None:
        raise ConfigurationError(
            place_of(deployment),
            f"energy_profile and {' and '.join(stated)}",
            "one of them: a profile, or numbers of your own",
        )
    found = None if stated else energy_profile(deployment)
    cached = own_info(deployment).get(CACHED_JOULES)
    if stated:
        numbers = (own_info(deployment).get(one) for one in JOULES)
        prompt, completion, request = (0.0 if one is None else number(one) for one in numbers)
    elif found is not None:
        prompt, completion = found.joules_per_prompt_token, found.joules_per_completion_token
        request = found.joules_per_request
        cached = found.joules_per_cached_token if cached is None else cached
    elif cached is not None:
        raise ConfigurationError(
            place_of(deployment), f"{CACHED_JOULES} alone", f"it with {JOULES[0]} or a profile"
        )
    else:
        return None
    discount = 0.0 if cached is None else prompt - number(cached)
    return Price(prompt, completion, cached_discount=discount, request=request)


def energy_profile(deployment: Deployment) -> EnergyProfile | None:
    """Load the profile that `model_info.messplus` names; None if it names none.

    Its path is relative to the proxy's working directory. Raises ConfigurationError for a profile
    that cannot be used.
    """
    path = own_info(deployment).get("energy_profile")
    return None if path is None else load_profile(Path(path), model=upstream_model(deployment))


DOLLARS = "`input_cost_per_token` and `output_cost_per_token` under `model_info` (0 is a price)"
ENERGY = (
    "`joules_per_prompt_token` and `joules_per_completion_token`, or an `energy_profile`, under "
    "`model_info.messplus`"
)
ELECTRICITY = "`electricity: {price_per_kwh: ...}` in the zoo"


@dataclass(frozen=True, slots=True)
class DeploymentPrice:
    """A price in the zoo's unit. ``per_dollar`` converts a dollar that LiteLLM charged for a call
    to that unit; None for a price of energy, which such dollars do not reflect."""

    price: Price
    per_dollar: float | None


def deployment_price(deployment: Deployment, zoo: ZooSettings) -> DeploymentPrice:
    """Find a deployment's price. The operator's stated price takes precedence over LiteLLM's price
    map, and the zoo's own unit over the other, which counts only if `electricity` states the price
    of a kWh.

    Raises ConfigurationError for a deployment without a price, or with an invalid one.
    """
    for key in ("zeusd", "gpus"):
        if (given := own_info(deployment).get(key)) is not None:
            place = f"{place_of(deployment)}, model_info.messplus.{key}"
            raise ConfigurationError(place, given, FORMER[key])
    try:
        is_joule = zoo.cost_unit is CostUnit.JOULE
        found = (_in_joules if is_joule else _in_dollars)(deployment, zoo)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(place_of(deployment), str(error), "prices as numbers") from error
    if not found.price.lowest() >= 0:  # false for NaN too
        raise ConfigurationError(place_of(deployment), found.price, "prices of at least 0")
    return found


def _in_dollars(deployment: Deployment, zoo: ZooSettings) -> DeploymentPrice:
    stated, energy = stated_dollars(deployment), energy_price(deployment)
    if stated is None and energy is not None and zoo.electricity is not None:
        dollars_per_joule = zoo.electricity.dollars_per_joule
        return DeploymentPrice(energy.times(dollars_per_joule), None)
    dollars = stated or public_dollars(deployment)
    if dollars is not None:
        return DeploymentPrice(dollars, 1.0)
    if energy is not None:
        raise ConfigurationError(
            place_of(deployment),
            "energy alone, in a zoo that counts in USD",
            f"{ELECTRICITY}, or {DOLLARS}",
        )
    raise ConfigurationError(place_of(deployment), "no price", DOLLARS)


def _in_joules(deployment: Deployment, zoo: ZooSettings) -> DeploymentPrice:
    energy = energy_price(deployment)
    if energy is not None:
        return DeploymentPrice(energy, None)
    dollars = stated_dollars(deployment) or public_dollars(deployment)
    if dollars is None:
        raise ConfigurationError(place_of(deployment), "no price", ENERGY)
    if zoo.electricity is None:
        raise ConfigurationError(
            place_of(deployment),
            "a price in USD alone, in a zoo that counts in joules",
            f"{ENERGY}, or {ELECTRICITY}",
        )
    joules_per_dollar = 1.0 / zoo.electricity.dollars_per_joule
    return DeploymentPrice(dollars.times(joules_per_dollar), joules_per_dollar)


def number(given: Any) -> float:
    """Read a price. YAML reads `3e-7` as text, so numeric text is accepted; `true` is not.

    Raises TypeError or ValueError for anything that is not a number.
    """
    if isinstance(given, bool):
        raise TypeError(f"{given} is no number")
    return float(given)
