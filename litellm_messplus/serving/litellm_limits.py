"""What LiteLLM would refuse to pick or to call, because of limits of rate or of budgets: its names
that it does not document, as in the seam."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import compress
from typing import Any

import litellm
from litellm.router_strategy.budget_limiter import RouterBudgetLimiting
from litellm.router_strategy.lowest_cost import LowestCostLoggingHandler
from litellm.router_strategy.lowest_latency import LowestLatencyLoggingHandler
from litellm.router_strategy.lowest_tpm_rpm_v2 import LowestTPMLoggingHandler_v2
from litellm.router_utils.pre_call_checks.model_rate_limit_check import ModelRateLimitingCheck
from litellm.utils import get_utc_datetime

from litellm_messplus.serving.litellm_seam import checks_before_calls, registry_of, running_router

LIMITING = (LowestCostLoggingHandler, LowestLatencyLoggingHandler, LowestTPMLoggingHandler_v2)
"""LiteLLM's strategies that pick no deployment beyond its `rpm` or `tpm`, as each counts them."""


async def with_room(
    group: str, deployments: Sequence[dict[str, Any]], kwargs: Mapping[str, Any] | None = None
) -> Sequence[dict[str, Any]]:
    """Leave out the deployments that LiteLLM would refuse to pick or to call, because of limits of
    rate or of budgets; if that leaves none, it refuses the request itself."""
    left = list(deployments)
    for check in litellm.callbacks:
        if isinstance(check, RouterBudgetLimiting):
            with suppress(ValueError):  # none is within its budget
                left = await check.async_filter_deployments(group, left, None, {**(kwargs or {})})
    if any(map(_is_limited, left)):
        asked = [_has_room(group, each) for each in left]
        left = list(compress(left, await asyncio.gather(*asked)))
    return left or deployments


def _is_limited(deployment: Mapping[str, Any]) -> bool:
    places = (deployment, deployment["litellm_params"], deployment["model_info"])
    return any(place.get(name) is not None for place in places for name in ("rpm", "tpm"))


async def _has_room(group: str, deployment: dict[str, Any]) -> bool:
    router = running_router()
    if router is not None and checks_before_calls(router):
        store = router.cache if registry_of(router) is None else router.health().store
        if _is_full(
            deployment["litellm_params"].get("rpm"),
            store.get_cache(deployment["model_info"].get("id"), local_only=True),
        ):
            return False
    for check in litellm.callbacks:
        if isinstance(check, ModelRateLimitingCheck):
            keys = check._get_cache_keys(deployment, get_utc_datetime().strftime("%H-%M"))
            counts = [await check.dual_cache.async_get_cache(key) for key in keys]
            if any(map(_is_full, check._get_deployment_limits(deployment), counts)):
                return False
        elif isinstance(check, LIMITING):
            with suppress(litellm.RateLimitError):
                if await check.async_get_available_deployments(group, [deployment]) is not None:
                    continue
            return False
    return True


def _is_full(limit: object, count: Any) -> bool:
    return isinstance(limit, int) and (count or 0) >= limit
