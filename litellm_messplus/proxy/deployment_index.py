"""Which candidate, at which price, stands behind LiteLLM's id of a deployment."""

from collections.abc import Iterable

from litellm_messplus.costs.price import CostUnit, TokenPrice
from litellm_messplus.proxy.deployments import (
    Deployment,
    candidate_of,
    deployment_id,
    token_price,
)


class DeploymentIndex:
    """Learned from what LiteLLM shows us: its ids exist only once the router has been built."""

    def __init__(self) -> None:
        self.candidates: dict[str, str] = {}
        self.prices: dict[str, TokenPrice] = {}

    def see(self, deployments: Iterable[Deployment], unit: CostUnit) -> None:
        """Remember the deployments of a zoo that counts in ``unit``."""
        for deployment in deployments:
            identity = deployment_id(deployment)
            if identity in self.candidates:
                continue
            self.candidates[identity] = candidate_of(deployment)
            price = token_price(deployment, unit)
            if price is not None:
                self.prices[identity] = price
