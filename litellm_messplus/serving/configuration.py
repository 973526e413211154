"""The settings and zoos of a whole proxy configuration, and what LiteLLM's own settings would take
from them."""

from collections.abc import Mapping, Sequence
from typing import Any

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.judges import check_judges
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.settings.zoo import Zoo


def honoured(config: Mapping[str, Any]) -> tuple[MessplusSettings, dict[str, Zoo]]:
    """Read the settings and zoos of a whole proxy configuration.

    Raises ConfigurationError for the first key that cannot be honoured.
    """
    settings = load_settings(config)
    model_list = config.get("model_list") or []
    zoos = configured_zoos(settings, config)
    check_judges(settings, model_list)
    router_settings = config.get("router_settings") or {}
    check_strategy(router_settings)
    check_affinity(list(zoos), router_settings)
    return settings, zoos


STRATEGIES = (
    "simple-shuffle",
    "least-busy",
    "usage-based-routing-v2",
    "latency-based-routing",
    "cost-based-routing",
)
"""LiteLLM's strategies that ask a filter first, the default one first."""


def check_strategy(router_settings: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if LiteLLM would pick deployments without asking the plugin. The
    strategy of a routing group always asks it, if that of the router does."""
    given = router_settings.get("routing_strategy")
    if given is not None and given not in STRATEGIES:
        allowed = f"{', '.join(STRATEGIES)}: by any other, LiteLLM picks without asking the plugin"
        raise ConfigurationError("router_settings.routing_strategy", given, allowed)


OVERRULING = ("session_affinity", "deployment_affinity")
"""LiteLLM's checks that reduce a group to the deployment that first served the session, or the
key: they make our choice void."""
KEPT = ("responses_api_deployment_check", "encrypted_content_affinity")
"""The checks that pin a request only if no other deployment can serve it."""


def check_affinity(zoos: Sequence[str], router_settings: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if LiteLLM's own affinity is on for a zoo."""
    everywhere = router_settings.get("optional_pre_call_checks") or []
    of_group = router_settings.get("model_group_affinity_config") or {}
    for zoo in zoos:
        own = of_group.get(zoo)
        checks = everywhere if own is None else own
        found = [name for name in checks if name in OVERRULING]
        if found:
            others = [name for name in checks if name in KEPT]
            where = "optional_pre_call_checks" if own is None else "model_group_affinity_config"
            raise ConfigurationError(
                f"router_settings.{where}",
                f"{' and '.join(found)}, which overrule the routing of the zoo {zoo}",
                f"`model_group_affinity_config: {{{zoo}: [{', '.join(others)}]}}` under "
                "router_settings, which turns them off for the zoo alone",
            )


def label_sources(settings: ZooSettings) -> list[str]:
    """Return the names of the sources of a zoo's labels."""
    found = [*settings.labels.sources]
    if (buying := settings.buy_labels) is not None:
        found.append(f"{buying.how}:{buying.judge or 'largest'}")
    return found
