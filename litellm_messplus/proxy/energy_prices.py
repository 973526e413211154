"""What a call to a deployment takes in joules, as the operator states or has measured it."""

from pathlib import Path

from litellm_messplus.costs.price import Price
from litellm_messplus.energy.profile import EnergyProfile, load_profile
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, own_info, place_of, upstream_model

JOULES = ("joules_per_prompt_token", "joules_per_completion_token", "joules_per_request")


def energy_price(deployment: Deployment) -> Price | None:
    """In joules, from the numbers or the profile that `model_info.messplus` names; else None.

    Raises ConfigurationError where both are given, and for a profile that cannot be used; TypeError
    or ValueError for what is no number.
    """
    stated = [name for name in JOULES if own_info(deployment).get(name) is not None]
    if stated and own_info(deployment).get("energy_profile") is not None:
        raise ConfigurationError(
            place_of(deployment),
            f"energy_profile and {' and '.join(stated)}",
            "one of them: a profile, or numbers of your own",
        )
    if stated:
        return _stated(deployment)
    found = energy_profile(deployment)
    if found is None:
        return None
    return Price(
        found.joules_per_prompt_token,
        found.joules_per_completion_token,
        request=found.joules_per_request,
    )


def energy_profile(deployment: Deployment) -> EnergyProfile | None:
    """The profile that `model_info.messplus` names; None where it names none.

    Its path is relative to the folder in which the proxy was started. Raises ConfigurationError for
    a profile that cannot be used.
    """
    path = own_info(deployment).get("energy_profile")
    return None if path is None else load_profile(Path(path), model=upstream_model(deployment))


def _stated(deployment: Deployment) -> Price:
    prompt, completion, request = (float(own_info(deployment).get(name) or 0.0) for name in JOULES)
    return Price(prompt, completion, request=request)
