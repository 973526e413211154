"""Which candidate, at which price, stands behind LiteLLM's id of a deployment."""

import logging
from collections.abc import Iterable

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments import Deployment, candidate_of, deployment_id
from litellm_messplus.proxy.prices import DeploymentPrice, deployment_price
from litellm_messplus.settings.schema import ZooSettings

logger = logging.getLogger("litellm_messplus")


class DeploymentIndex:
    """Learned from what LiteLLM shows us: its ids exist only once the router has been built."""

    def __init__(self) -> None:
        self.candidates: dict[str, str] = {}
        self.prices: dict[str, DeploymentPrice] = {}

    def see(self, deployments: Iterable[Deployment], zoo: ZooSettings) -> None:
        """Remember the deployments of a zoo. One that was added without a price while the proxy
        runs goes at its candidate's, and is logged."""
        for deployment in deployments:
            identity = deployment_id(deployment)
            if identity in self.candidates:
                continue
            self.candidates[identity] = candidate_of(deployment)
            try:
                self.prices[identity] = deployment_price(deployment, zoo)
            except ConfigurationError as error:
                logger.warning("a deployment goes at the price of its candidate: %s", error)
