"""What a call to a deployment takes in joules, as the operator states or has measured it."""

from pathlib import Path

from litellm_messplus.costs.price import Price
from litellm_messplus.energy.profile import load_profile
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, own_info, place_of, upstream_model

JOULES = ("joules_per_prompt_token", "joules_per_completion_token", "joules_per_request")


def energy_price(deployment: Deployment) -> Price | None:
    """In joules, from the numbers or the profile that `model_info.messplus` names; else None.

    A profile's path is relative to the folder in which the proxy was started.

    Raises ConfigurationError where both are given, and for a profile that cannot be used; TypeError
    or ValueError for what is no number.
    """
    stated = [name for name in JOULES if own_info(deployment).get(name) is not None]
    profile = own_info(deployment).get("energy_profile")
    if profile is None:
        return _stated(deployment) if stated else None
    if stated:
        raise ConfigurationError(
            place_of(deployment),
            f"energy_profile and {' and '.join(stated)}",
            "one of them: a profile, or numbers of your own",
        )
    found = load_profile(Path(profile), model=upstream_model(deployment))
    return Price(
        found.joules_per_prompt_token,
        found.joules_per_completion_token,
        request=found.joules_per_request,
    )


def _stated(deployment: Deployment) -> Price:
    prompt, completion, request = (float(own_info(deployment).get(name) or 0.0) for name in JOULES)
    return Price(prompt, completion, request=request)
