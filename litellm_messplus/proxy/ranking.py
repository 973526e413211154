"""A decision as LiteLLM's router understands it: copies of the deployments with an `order`.

The deployments are ranked, not narrowed: the filters that LiteLLM runs after ours (tags, context
window) still apply, and replicas of the best candidate stay load-balanced.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from litellm_messplus.proxy.deployments import Deployment, candidate_of, deployment_id

RANKS = 10_000
"""More than a zoo has candidates: the user's own `order` counts first, our rank within it."""


def ranked(
    deployments: Sequence[Deployment], ranking: Sequence[str], tried: Collection[str]
) -> list[dict[str, Any]]:
    """Copies of all deployments, best first by `order`; those ``tried`` before come last.

    ``tried`` holds deployment ids. A deployment of a candidate outside the ranking keeps its place
    behind the ranked ones.
    """
    place = {candidate: rank for rank, candidate in enumerate(ranking, start=1)}
    return [
        _with_order(
            deployment,
            _user_order(deployment) * 2 * RANKS
            + (RANKS if deployment_id(deployment) in tried else 0)
            + place.get(candidate_of(deployment), len(place) + 1),
        )
        for deployment in deployments
    ]


def best_of_order(
    deployments: Sequence[Deployment], ranking: Sequence[str], order: int
) -> list[Deployment]:
    """Where LiteLLM falls back to one of the user's own orders: the best candidate within it."""
    allowed = [deployment for deployment in deployments if _user_order(deployment) == order]
    for candidate in ranking:
        own = [deployment for deployment in allowed if candidate_of(deployment) == candidate]
        if own:
            return own
    return list(deployments)


def only(deployments: Sequence[Deployment], candidate: str) -> list[Deployment]:
    """The deployments of one candidate, for an exploration call."""
    return [deployment for deployment in deployments if candidate_of(deployment) == candidate]


def pinned(deployments: Sequence[Deployment], identity: str | None) -> Sequence[Deployment]:
    """The deployment with that id alone; all of them where it is not there."""
    found = [deployment for deployment in deployments if deployment_id(deployment) == identity]
    return found or deployments


def _user_order(deployment: Deployment) -> int:
    params: Mapping[str, Any] = deployment.get("litellm_params") or {}
    info: Mapping[str, Any] = deployment.get("model_info") or {}
    order = params.get("order") if params.get("order") is not None else info.get("order")
    return 0 if order is None else int(order)


def _with_order(deployment: Deployment, order: int) -> dict[str, Any]:
    return {**deployment, "litellm_params": {**deployment["litellm_params"], "order": order}}
