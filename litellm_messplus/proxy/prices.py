"""The price of a deployment in its zoo's unit: LiteLLM's dollars, or energy."""

from dataclasses import dataclass

from litellm_messplus.costs.price import CostUnit, Price
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, place_of
from litellm_messplus.proxy.dollars import public_dollars, stated_dollars
from litellm_messplus.proxy.energy_prices import energy_price
from litellm_messplus.settings.schema import ZooSettings

DOLLARS = "`input_cost_per_token` and `output_cost_per_token` under `model_info` (0 is a price)"
ENERGY = (
    "`joules_per_prompt_token` and `joules_per_completion_token`, or an `energy_profile`, under "
    "`model_info.messplus`"
)
ELECTRICITY = "`electricity: {price_per_kwh: ...}` in the zoo"


@dataclass(frozen=True, slots=True)
class DeploymentPrice:
    """A price in the zoo's unit. ``per_dollar`` is how much of that unit a dollar is which LiteLLM
    charged for a call; None where the price is one of energy, of which such dollars say nothing.
    ``per_joule`` is how much a joule is which was measured; None where the price is dollars."""

    price: Price
    per_dollar: float | None
    per_joule: float | None = None


def deployment_price(deployment: Deployment, zoo: ZooSettings) -> DeploymentPrice:
    """What the operator states goes before what LiteLLM's price map knows, and the zoo's own unit
    before the other; the other counts only where `electricity` says what a kWh costs.

    Raises ConfigurationError for a deployment without a price, or with one that is none.
    """
    try:
        is_joule = zoo.cost_unit is CostUnit.JOULE
        found = (_in_joules if is_joule else _in_dollars)(deployment, zoo)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(place_of(deployment), str(error), "prices as numbers") from error
    if not found.price.lowest() >= 0:  # which no comparison with NaN is
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
