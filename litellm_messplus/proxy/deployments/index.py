"""Which candidate stands behind LiteLLM's id of a deployment, at which price, measured where."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence

from litellm_messplus.costs.price import Price, average
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments.deployment import Deployment, candidate_of, deployment_id
from litellm_messplus.proxy.deployments.energy_sources import (
    MeasuredDeployment,
    measured_deployment,
)
from litellm_messplus.proxy.deployments.prices import DeploymentPrice, deployment_price
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.switching.modes import LITELLM
from litellm_messplus.zoo import Zoo

logger = logging.getLogger("litellm_messplus")


class DeploymentIndex:
    """The deployments by LiteLLM's id, learned from what LiteLLM shows us: its ids exist only once
    the router has been built."""

    def __init__(self) -> None:
        self.candidates_of: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By zoo and id: a fallback may go from one zoo to another."""
        self.prices: dict[str, DeploymentPrice] = {}
        self.measured: dict[str, MeasuredDeployment] = {}
        self.replicas: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """Ids by zoo and candidate."""

    def candidate(self, zoo: str, deployment: str | None) -> str | None:
        """Find the candidate that a deployment is a replica of; None if it is not of that zoo."""
        return self.candidates_of[zoo].get(deployment or "")

    def see(self, deployments: Iterable[Deployment], zoo: ZooSettings) -> None:
        """Remember the deployments of a zoo. One that was added without a price while the proxy
        runs goes at its candidate's, and is logged."""
        for deployment in deployments:
            identity, zoo_name = deployment_id(deployment), str(deployment.get("model_name"))
            known = self.candidates_of[zoo_name]
            if identity in known:
                continue
            candidate = known[identity] = candidate_of(deployment)
            self.replicas[zoo_name, candidate].append(identity)
            try:
                self.prices[identity] = deployment_price(deployment, zoo)
            except ConfigurationError as error:
                logger.warning("a deployment without a price gets that of its candidate: %s", error)
            self._measure(identity, deployment)

    def _measure(self, identity: str, deployment: Deployment) -> None:
        try:
            found = measured_deployment(deployment)
        except ConfigurationError as error:
            logger.warning("the energy of a deployment is not measured: %s", error)
            return
        if found is not None:
            self.measured[identity] = found


# LiteLLM's `model_list` as zoos: replicas grouped into candidates, each with its price.


def build_zoos(settings: MessplusSettings, model_list: Sequence[Deployment]) -> dict[str, Zoo]:
    """Build the configured zoos over the proxy's `model_list`.

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
    _check_before(key, settings, list(grouped))
    prices = {candidate: average(prices) for candidate, prices in grouped.items()}
    if settings.largest is None and len(set(prices.values())) == 1:
        raise ConfigurationError(
            f"{key}.largest", "nothing, and all prices are equal", " or ".join(prices)
        )
    return Zoo(name, settings, prices)


def _check_before(key: str, settings: ZooSettings, known: Sequence[str]) -> None:
    """Raise ConfigurationError where the mode has nothing to serve as before with, or another
    name."""
    if settings.zoo_mode.problem(known) is not None:
        allowed = f"{LITELLM}, or the candidate that served before: {', '.join(known)}"
        given = settings.before or f"nothing, under `mode: {settings.mode}`"
        raise ConfigurationError(f"{key}.before", given, allowed)
