"""What served before the router, as LiteLLM's deployments: all, a group of them, or a candidate."""

from collections.abc import Sequence

from litellm_messplus.proxy.deployments import deployment
from litellm_messplus.proxy.deployments.deployment import Deployment
from litellm_messplus.proxy.deployments.membership import of_group
from litellm_messplus.proxy.open_requests import OpenRequest
from litellm_messplus.switching.modes import LITELLM, group_of


def served_before(
    deployments: Sequence[Deployment], opened: OpenRequest, order: int | None
) -> Sequence[Deployment]:
    """Return the deployments as they were before: as they came, those of a group as they came, or
    those of one candidate first and the others as a last resort."""
    before = opened.before or LITELLM
    if before == LITELLM:
        return deployments
    group = group_of(before)
    if group is not None:
        return _members(deployments, group, order)
    if order is not None:
        return deployment.best_of_order(deployments, (before,), order)
    return deployment.ranked(deployments, (before,), opened.tried)


def _members(
    deployments: Sequence[Deployment], group: str, order: int | None
) -> Sequence[Deployment]:
    """Return the deployments of a group, untouched: the order, the weights and the strategy of
    LiteLLM decide. Where none is healthy, or of the order that it falls back to, all of them."""
    own = of_group(deployments, group)
    is_there = any(order is None or deployment.is_of_order(each, order) for each in own)
    return own if is_there else deployments


def known_before(before: str, deployments: Sequence[Deployment]) -> str:
    """Name the candidate that will serve, where a group has only one."""
    group = group_of(before)
    found = {deployment.candidate_of(each) for each in of_group(deployments, group or "")}
    return found.pop() if len(found) == 1 else before
