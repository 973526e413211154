"""LiteLLM's `model_list` as zoos: replicas grouped into candidates, each with its price."""

from collections.abc import Sequence

from litellm_messplus.costs.price import Price, average
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, candidate_of
from litellm_messplus.proxy.prices import deployment_price
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.zoo import Zoo


def build_zoos(settings: MessplusSettings, model_list: Sequence[Deployment]) -> dict[str, Zoo]:
    """The configured zoos over the proxy's `model_list`.

    Raises ConfigurationError for a zoo without deployments or with one candidate, and for a
    deployment without a price in the zoo's unit.
    """
    return {name: _build_zoo(name, zoo, model_list) for name, zoo in settings.zoos.items()}


def _build_zoo(name: str, settings: ZooSettings, model_list: Sequence[Deployment]) -> Zoo:
    key = f"messplus.zoos.{name}"
    own = [deployment for deployment in model_list if deployment.get("model_name") == name]
    if not own:
        names = ", ".join(sorted({str(d.get("model_name")) for d in model_list})) or "none"
        raise ConfigurationError(key, name, f"a `model_name` of `model_list` (there: {names})")
    grouped: dict[str, list[Price]] = {}
    for deployment in own:
        price = deployment_price(deployment, settings).price
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
