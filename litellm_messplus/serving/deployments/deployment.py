"""One of LiteLLM's deployments, in `model_list` or as its router shows it; and whose it is."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import litellm

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.serving import TeamModels
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import group_value

Deployment = Mapping[str, Any]


def model_info(deployment: Deployment) -> Mapping[str, Any]:
    """Return LiteLLM's `model_info` of a deployment, empty where it has none."""
    return deployment.get("model_info") or {}


def own_info(deployment: Deployment) -> Mapping[str, Any]:
    """Return what `model_info.messplus` says; it stands there because LiteLLM sends unknown params
    upstream."""
    return model_info(deployment).get("messplus") or {}


def deployment_id(deployment: Deployment) -> str:
    """Return LiteLLM's id of a deployment."""
    return str(model_info(deployment).get("id"))


def candidate_of(deployment: Deployment) -> str:
    """Return the candidate that a deployment is a replica of: one model, however often it is
    served.

    Deployments of one `litellm_params.model` are replicas; `model_info.messplus.candidate` names
    the candidate where the models are spelled differently, or must be kept apart.
    """
    named = own_info(deployment).get("candidate")
    return str(named or deployment["litellm_params"]["model"])


def upstream_model(deployment: Deployment) -> str:
    """Return the name by which the endpoint knows the model: without LiteLLM's prefix of the
    provider."""
    params = deployment["litellm_params"]
    try:
        model, _, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider")
        )
    except Exception:  # it raises a bare Exception for a model that it does not know
        return str(params["model"])
    return str(model)


def place_of(deployment: Deployment) -> str:
    """Say where it stands in the configuration, for messages."""
    name, model = deployment.get("model_name"), deployment["litellm_params"]["model"]
    return f"model_list, {name} ({model})"


# A decision as LiteLLM's router understands it: copies of the deployments with an `order`.
#
# The deployments are ranked, not narrowed: the filters that LiteLLM runs after ours (tags, context
# window) still apply, and replicas of the best candidate stay load-balanced.

RANKS = 10_000
"""More than a zoo has candidates: the user's own `order` counts first, our rank within it."""


def ranked(
    deployments: Sequence[Deployment],
    ranking: Sequence[str],
    tried: Collection[str],
    barred: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Copy all deployments, best first by `order`; those ``tried`` before come last, and behind
    them those that are ``barred``, whatever the user's own order of them.

    ``tried`` and ``barred`` hold deployment ids. A deployment of a candidate outside the ranking
    keeps its place behind the ranked ones.
    """
    place = {candidate: rank for rank, candidate in enumerate(ranking, start=1)}
    orders = [_user_order(deployment) for deployment in deployments] if barred else [0]
    behind = max(orders) - min(orders) + 1
    return [
        _with_order(
            deployment,
            (_user_order(deployment) + (behind if deployment_id(deployment) in barred else 0))
            * 2
            * RANKS
            + (RANKS if deployment_id(deployment) in tried else 0)
            + place.get(candidate_of(deployment), len(place) + 1),
        )
        for deployment in deployments
    ]


def led_by(ranked: Sequence[Deployment], identity: str) -> list[Deployment]:
    """Put the deployment with that id before all others that are ranked, whatever the user's own
    order: its state, or its cache, is there and nowhere else."""
    first = min(map(_user_order, ranked), default=0) - 1
    return [
        _with_order(deployment, first) if deployment_id(deployment) == identity else deployment
        for deployment in ranked
    ]


def best_of_order(
    deployments: Sequence[Deployment],
    ranking: Sequence[str],
    order: int,
    barred: Collection[str] = (),
) -> Sequence[Deployment]:
    """Return the best candidate within one of the user's own orders, to which LiteLLM falls back.

    Where all of that order are ``barred``, those that are not are given it: a request must not go
    to what cannot take it because another failed.
    """
    able = [deployment for deployment in deployments if deployment_id(deployment) not in barred]
    allowed = [deployment for deployment in able if _user_order(deployment) == order]
    if barred and not allowed:
        return [_with_order(deployment, order) for deployment in able]
    for candidate in ranking:
        own = [deployment for deployment in allowed if candidate_of(deployment) == candidate]
        if own:
            return own
    return allowed or list(deployments)


# A call of our own is for one candidate: an exploration, or a judge.

exploration_target: ContextVar[str | None] = ContextVar("exploration_target", default=None)
"""Set in the context of an exploration call: our own filter then keeps that candidate only."""
exploration_barred: ContextVar[frozenset[str]] = ContextVar(
    "exploration_barred", default=frozenset()
)
"""Ids of deployments that cannot take the request, which an exploration call passes by."""


def only(
    deployments: Sequence[Deployment], candidate: str, barred: Collection[str] = ()
) -> list[Deployment]:
    """Return the deployments of one candidate, for an exploration call; none that is ``barred``."""
    return [
        deployment
        for deployment in deployments
        if candidate_of(deployment) == candidate and deployment_id(deployment) not in barred
    ]


def pinned(deployments: Sequence[Deployment], identity: str | None) -> Sequence[Deployment]:
    """Return the deployment with that id alone; all of them where it is not there."""
    found = [deployment for deployment in deployments if deployment_id(deployment) == identity]
    return found or deployments


def is_of_order(deployment: Deployment, order: int) -> bool:
    """Tell whether the user has given a deployment that `order`."""
    return _user_order(deployment) == order


def first(deployments: Sequence[Deployment]) -> Deployment:
    """Return the one that LiteLLM tries first, by `order`, as far as its own filters keep it."""
    return min(deployments, key=_user_order)


def _user_order(deployment: Deployment) -> int:
    params: Mapping[str, Any] = deployment.get("litellm_params") or {}
    info: Mapping[str, Any] = deployment.get("model_info") or {}
    order = params.get("order") if params.get("order") is not None else info.get("order")
    return 0 if order is None else int(order)


def _with_order(deployment: Deployment, order: int) -> dict[str, Any]:
    return {**deployment, "litellm_params": {**deployment["litellm_params"], "order": order}}


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
