"""LiteLLM's own router as tests drive it, on every version that is supported: by its official entry
points since LiteLLM 1.109, by its methods before."""

from typing import Any

import litellm
from litellm.router_strategy.tag_based_routing import get_deployments_for_tag
from litellm.types.router import Deployment as LiteLLMDeployment

from litellm_messplus.serving.litellm_seam import deployments_of

IS_OFFICIAL = hasattr(litellm.Router, "registry")


def deployments(router: litellm.Router) -> list[dict[str, Any]]:
    """Return all deployments, in configured order."""
    return [dict(each) for each in deployments_of(router)]


def identities(router: litellm.Router) -> list[str]:
    """Return the ids of all deployments, sorted."""
    return sorted(each["model_info"]["id"] for each in deployments_of(router))


async def healthy(router: litellm.Router, group: str, arguments: Any, **given: Any) -> list[str]:
    """Return the ids of the deployments that LiteLLM would load-balance between."""
    if IS_OFFICIAL:
        found = await router.select(group, arguments, kind="healthy", **given)
    else:
        found = await router.async_get_healthy_deployments(group, arguments, **given)
    assert isinstance(found, list)
    return [each["model_info"]["id"] for each in found]


def put(router: litellm.Router, given: dict[str, Any]) -> None:
    """Add a deployment, or replace the one of its id, as LiteLLM's reconcile does."""
    if IS_OFFICIAL:
        _apply(router, upsert=[LiteLLMDeployment(**given)])
    else:
        router.upsert_deployment(LiteLLMDeployment(**given))


def remove(router: litellm.Router, identity: str) -> None:
    """Remove the deployment of that id."""
    if IS_OFFICIAL:
        _apply(router, delete=[identity])
    else:
        router.delete_deployment(id=identity)


def _apply(router: litellm.Router, **changes: Any) -> None:
    from litellm.router_api import ChangeSet

    router.apply(ChangeSet(**changes))


async def kept_by_tags(router: litellm.Router, group: str, arguments: dict[str, Any]) -> set[str]:
    """Return the ids that LiteLLM's filter by tags keeps of a group, all of which is healthy.

    Raises ValueError where it refuses the request.
    """
    own = "metadata" if "metadata" in arguments else "litellm_metadata"
    everyone = deployments_of(router)
    context = router._core_ctx if IS_OFFICIAL else router
    kept = await get_deployments_for_tag(
        context, group, everyone, arguments, own, request_deployments=everyone
    )
    return {each["model_info"]["id"] for each in kept}
