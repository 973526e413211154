"""Which candidate stands behind LiteLLM's id of a deployment, at which price, measured where."""

import logging
from collections import defaultdict
from collections.abc import Iterable

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, candidate_of, deployment_id
from litellm_messplus.proxy.energy_sources import MeasuredDeployment, measured_deployment
from litellm_messplus.proxy.prices import DeploymentPrice, deployment_price
from litellm_messplus.settings.schema import ZooSettings

logger = logging.getLogger("litellm_messplus")


class DeploymentIndex:
    """Learned from what LiteLLM shows us: its ids exist only once the router has been built."""

    def __init__(self) -> None:
        self.candidates_of: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By zoo and id: a fallback may go from one zoo to another."""
        self.prices: dict[str, DeploymentPrice] = {}
        self.measured: dict[str, MeasuredDeployment] = {}
        self.replicas: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """Ids by zoo and candidate."""

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
                logger.warning("a deployment goes at the price of its candidate: %s", error)
            self._measure(identity, deployment)

    def _measure(self, identity: str, deployment: Deployment) -> None:
        try:
            found = measured_deployment(deployment)
        except ConfigurationError as error:
            logger.warning("the energy of a deployment is not measured: %s", error)
            return
        if found is not None:
            self.measured[identity] = found
