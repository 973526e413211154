"""The deployments that served before the router: all, those of a group, or those of a candidate."""

from collections.abc import Collection, Sequence

from litellm_messplus.serving.deployments import deployment
from litellm_messplus.serving.deployments.deployment import Deployment, of_group
from litellm_messplus.switching.modes import LITELLM, group_of


def served_before(
    deployments: Sequence[Deployment],
    before: str,
    failed: Collection[str],
    barred: Collection[str],
    order: int | None,
) -> Sequence[Deployment]:
    """Return the deployments that served before: all of them, as LiteLLM's order, weights and
    strategy decide, those of a group, or those of one candidate and the others as a last resort."""
    if before == LITELLM:
        return deployments
    group = group_of(before)
    if group is None:
        return deployment.to_try(deployments, (before,), failed, barred, order)
    own = of_group(deployments, group)
    is_there = any(order is None or deployment.user_order(each) == order for each in own)
    return own if is_there else deployments


def known_before(before: str, deployments: Sequence[Deployment]) -> str:
    """Return the candidate that will serve, if the group has only one; else ``before`` itself."""
    group = group_of(before)
    found = {deployment.candidate_of(each) for each in of_group(deployments, group or "")}
    return found.pop() if len(found) == 1 else before
