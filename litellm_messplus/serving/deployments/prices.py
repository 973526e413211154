"""The price of a deployment in its zoo's unit: LiteLLM's dollars, or energy and its sensors."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import litellm

from litellm_messplus.costs.price import (
    ABOVE_200K,
    CACHED,
    CACHED_FROM,
    HOUR,
    PROMPT,
    WRITTEN,
    CostUnit,
    Price,
    number,
    price_of_rates,
    states_a_price,
)
from litellm_messplus.energy.meter import NotMeasuredError
from litellm_messplus.energy.profile import EnergyProfile, load_profile
from litellm_messplus.energy.zeus import host_and_port, require_zeusd_client
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    model_info,
    own_info,
    place_of,
    upstream_model,
)
from litellm_messplus.serving.litellm_seam import OWN_RATES
from litellm_messplus.settings.schema import ZooSettings

# LiteLLM's charge for a call to a deployment, in USD, as far as it is known in advance.

INHERITED = (
    *(CACHED, ABOVE_200K.format(CACHED)),
    *(WRITTEN, ABOVE_200K.format(WRITTEN), HOUR),
)
"""Rates that LiteLLM adds from the price map to a price of the operator's own."""
INCLUSIVE = frozenset({"xai"})
"""Providers whose price tiers begin at their limit; those of others begin above it."""


def stated_dollars(deployment: Deployment) -> Price | None:
    """Read the price that the operator's configuration states; None if it states none.

    As in LiteLLM, `litellm_params` takes precedence over `model_info`, and any stated price hides
    the whole price map but its prices of cached and written tokens. LiteLLM has no price per chat
    request; ours is added to its charge.

    Raises TypeError or ValueError for a value that is not a number.
    """
    rates = {
        name: value
        for source in (model_info(deployment), deployment["litellm_params"])
        for name, value in source.items()
        if name in OWN_RATES and value is not None
    }
    request = own_info(deployment).get("cost_per_request")
    if states_a_price(rates):
        public = _public_rates(deployment)
        inherited = INHERITED if rates.get(PROMPT) is not None else ()
        for name in inherited:
            rates.setdefault(name, public.get(name))
        rates[CACHED_FROM] = model_info(deployment).get(CACHED_FROM, public.get(CACHED_FROM))
        price = price_of_rates(rates, is_inclusive=_provider(deployment) in INCLUSIVE)
    else:
        price = None if request is None else public_dollars(deployment) or Price()
    return (
        replace(price, request=0.0 if request is None else number(request))
        if price is not None
        else None
    )


def public_dollars(deployment: Deployment) -> Price | None:
    """Read the price from LiteLLM's price map, which lists the public providers' models."""
    return price_of_rates(
        _public_rates(deployment), is_inclusive=_provider(deployment) in INCLUSIVE
    )


def known_dollars(deployment: Deployment) -> Price | None:
    """Read the operator's stated price, else that of the price map; None if neither is a price."""
    try:
        return stated_dollars(deployment) or public_dollars(deployment)
    except (TypeError, ValueError):
        return None


def is_free(identity: str) -> bool:
    """Tell whether the operator has stated a price of zero for LiteLLM's deployment of that id."""
    price = price_of_rates(litellm.model_cost.get(identity) or {})
    return price is not None and replace(price, cached_from=0.0) == Price()


def _public_rates(deployment: Deployment) -> Mapping[str, Any]:
    """Look up a model's entry in the price map; empty if it has none.

    LiteLLM's view of the entry has zero for a missing price, and its router gives every served
    model an entry, mostly without a price; so the entry itself is read. Only the names in the view
    are kept: LiteLLM charges by no others. The rates of the deployment's service tier replace the
    usual ones.
    """
    try:
        model, provider = model_and_provider(deployment)
        found = litellm.get_model_info(model=model, custom_llm_provider=provider)
    except Exception:  # a bare Exception for an unknown model
        return {}
    entry = litellm.model_cost.get(found["key"]) or {}
    rates = {name: value for name, value in entry.items() if name in found}
    suffix = f"_{deployment['litellm_params'].get('service_tier')}"
    tier = {name: value for name, value in rates.items() if name.endswith(suffix)}
    return rates | {name.removesuffix(suffix): value for name, value in tier.items()}


def _provider(deployment: Deployment) -> str | None:
    """Return the provider; None if LiteLLM does not know it."""
    try:
        return model_and_provider(deployment)[1]
    except Exception:  # bare here too
        return None


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
    to that unit; None for a price of energy, which such dollars do not reflect. ``per_joule``
    converts a measured joule; None for a price in dollars."""

    price: Price
    per_dollar: float | None
    per_joule: float | None = None


def deployment_price(deployment: Deployment, zoo: ZooSettings) -> DeploymentPrice:
    """Find a deployment's price. The operator's stated price takes precedence over LiteLLM's price
    map, and the zoo's own unit over the other, which counts only if `electricity` states the price
    of a kWh.

    Raises ConfigurationError for a deployment without a price, or with an invalid one.
    """
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
        return DeploymentPrice(energy.times(dollars_per_joule), None, dollars_per_joule)
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
        return DeploymentPrice(energy, None, 1.0)
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


# Where the energy of a deployment's calls is measured, from `model_info.messplus`.


@dataclass(frozen=True, slots=True)
class EnergySource:
    """The sensors of one zeusd daemon; deployments that name the same ones share their energy."""

    zeusd: str
    gpus: tuple[int, ...]
    with_cpu: bool


@dataclass(frozen=True, slots=True)
class MeasuredDeployment:
    """A deployment whose calls are measured, and the profile by which they share the energy."""

    source: EnergySource
    profile: EnergyProfile


def measured_deployments(
    zoos: Container[str], model_list: Sequence[Deployment]
) -> list[MeasuredDeployment]:
    """List the deployments of the zoos that name a daemon.

    Raises ConfigurationError for one that cannot be measured as configured, and if the client of
    zeusd is not installed. A daemon may be down now and start later.
    """
    own = [each for each in model_list if each.get("model_name") in zoos]
    found = [each for each in map(measured_deployment, own) if each is not None]
    if found:
        try:
            require_zeusd_client()
        except NotMeasuredError as error:
            raise ConfigurationError(
                "model_info.messplus.zeusd", found[0].source.zeusd, str(error)
            ) from error
    return found


def measured_deployment(deployment: Deployment) -> MeasuredDeployment | None:
    """Read how a deployment is measured; CPUs are included if its profile includes them. None if it
    names no daemon.

    Raises ConfigurationError for a daemon without a profile, for an invalid address or list of
    GPUs, and if the number of GPUs differs from the profile's.
    """
    address, gpus = own_info(deployment).get("zeusd"), own_info(deployment).get("gpus")
    place = f"{place_of(deployment)}, model_info.messplus"
    if address is None:
        if gpus is not None:
            raise ConfigurationError(f"{place}.gpus", gpus, "together with `zeusd` alone")
        return None
    profile = energy_profile(deployment)
    if profile is None:
        raise ConfigurationError(
            f"{place}.zeusd", address, "together with an `energy_profile`, which it follows"
        )
    source = EnergySource(
        _address(f"{place}.zeusd", address),
        _gpus(f"{place}.gpus", gpus, profile),
        with_cpu=any(name.startswith("cpu") for name in profile.sensors),
    )
    return MeasuredDeployment(source, profile)


def _address(key: str, given: Any) -> str:
    try:
        host, port = host_and_port(given)
    except (AttributeError, NotMeasuredError) as error:
        raise ConfigurationError(key, given, "HOST or HOST:PORT of a zeusd daemon") from error
    return f"{host}:{port}"


def _gpus(key: str, given: Any, profile: EnergyProfile) -> tuple[int, ...]:
    """Check the list of GPUs; only their count, as Zeus and zeusd may number them differently."""
    listed = [] if given is None else given
    if not isinstance(listed, list) or not all(type(each) is int and each >= 0 for each in listed):
        raise ConfigurationError(key, given, "a list of GPUs by zeusd's numbers, such as [0]")
    expected = sum(name.startswith("gpu") for name in profile.sensors)
    if len(set(listed)) != expected:
        raise ConfigurationError(
            key, given, f"the {expected} on which the profile was measured, by zeusd's numbers"
        )
    return tuple(sorted(set(listed)))
