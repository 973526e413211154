"""Which deployments are a zoo's: by their `model_name`, by a routing group, or by a team."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments.deployment import Deployment, model_info
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.serving import TeamModels
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import group_value

Groups = Mapping[str, Sequence[str]]
"""The model names of each of LiteLLM's routing groups."""


def routing_groups(router_settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read the routing groups of a configuration."""
    groups = router_settings.get("routing_groups") or []
    return {str(each.get("group_name")): tuple(each.get("models") or ()) for each in groups}


def is_a_teams(deployment: Deployment) -> bool:
    """Tell whether LiteLLM serves it to one team alone."""
    return model_info(deployment).get("team_id") is not None


def members(
    zoo: str, settings: ZooSettings, model_list: Sequence[Deployment], groups: Groups
) -> list[Deployment]:
    """Find the deployments of a zoo. As at LiteLLM, a `model_name` goes before a routing group of
    that name."""
    return list(_members(zoo, settings, model_list, groups))


def _members(
    zoo: str, settings: ZooSettings, model_list: Sequence[Deployment], groups: Groups
) -> Iterator[Deployment]:
    common = [each for each in model_list if not is_a_teams(each)]
    is_a_name = any(each.get("model_name") == zoo for each in common)
    names = (zoo,) if is_a_name else groups.get(zoo, ())
    yield from (each for each in common if each.get("model_name") in names)
    if settings.teams is TeamModels.INCLUDE:
        for each in model_list:
            if is_a_teams(each) and model_info(each).get("team_public_model_name") == zoo:
                yield each


def member_groups(zoo: str, model_list: Sequence[Deployment], groups: Groups) -> tuple[str, ...]:
    """Name the model groups that a zoo is made of; none where it is a `model_name` itself."""
    is_a_name = any(each.get("model_name") == zoo for each in model_list if not is_a_teams(each))
    return () if is_a_name else tuple(groups.get(zoo, ()))


def befores(zoo: Zoo) -> tuple[str, ...]:
    """Name what may have served before, beside LiteLLM's choice among all of a zoo: its candidates,
    and the groups that it is made of."""
    return (*zoo.candidates, *map(group_value, zoo.groups))


def of_group(deployments: Sequence[Deployment], group: str) -> list[Deployment]:
    """Find the deployments of one model group, among those of a zoo that is made of several."""
    return [each for each in deployments if each.get("model_name") == group]


def refuse_wildcard(zoo: str) -> None:
    """Raise ConfigurationError for a zoo that is named by a pattern."""
    if "*" in zoo:
        raise ConfigurationError(
            f"messplus.zoos.{zoo}",
            "a wildcard, behind which each name is another model",
            "a `model_name`, or the `group_name` of one of `router_settings.routing_groups`, whose "
            "models can take each other's requests",
        )
