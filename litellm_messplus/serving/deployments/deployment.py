"""One of LiteLLM's deployments, from `model_list` or its router: its candidate, order and zoo."""

from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import litellm

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.surfaces.parameters import Values, arm_name, read_parameters
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.serving import TeamModels
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import group_value

Deployment = Mapping[str, Any]


def model_info(deployment: Deployment) -> Mapping[str, Any]:
    """Return LiteLLM's `model_info` of a deployment, empty if it has none."""
    return deployment.get("model_info") or {}


def own_info(deployment: Deployment) -> Mapping[str, Any]:
    """Return `model_info.messplus`; it is kept there because LiteLLM sends unknown params
    upstream."""
    return model_info(deployment).get("messplus") or {}


def deployment_id(deployment: Deployment) -> str:
    """Return LiteLLM's id of a deployment."""
    return str(model_info(deployment).get("id"))


def arm_of(deployment: Deployment) -> Values:
    """Return the parameters of a deployment that make it an arm of its model."""
    return read_parameters(deployment["litellm_params"])


def candidate_of(deployment: Deployment) -> str:
    """Return the candidate that a deployment is a replica of: one arm, served any number of times.

    Deployments of one `litellm_params.model` that set the same parameters are replicas;
    `model_info.messplus.candidate` names the candidate if the models are spelled differently, or
    must be kept apart.
    """
    named = own_info(deployment).get("candidate")
    return str(named or arm_name(str(deployment["litellm_params"]["model"]), arm_of(deployment)))


def upstream_model(deployment: Deployment) -> str:
    """Return the model's name at the endpoint, without LiteLLM's provider prefix."""
    params = deployment["litellm_params"]
    try:
        model, _, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider")
        )
    except Exception:  # a bare Exception for an unknown model
        return str(params["model"])
    return str(model)


def place_of(deployment: Deployment) -> str:
    """Return the deployment's place in the configuration, for messages."""
    name, model = deployment.get("model_name"), deployment["litellm_params"]["model"]
    return f"model_list, {name} ({model})"


# The healthy deployments of a request, read once for as long as LiteLLM shows the same ones.

GROUPS = 64
"""Lists of deployments that are kept: a zoo has one more while a deployment is in cooldown."""
VLLM = "hosted_vllm/"
"""Prefix of LiteLLM's name of a model that a vLLM server serves."""


class Known(NamedTuple):
    """A deployment as it is read: its id, its candidate, the user's own `order`, and whether a
    vLLM server serves it."""

    deployment: Deployment
    identity: str
    candidate: str
    order: int
    is_vllm: bool


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Deployments that LiteLLM shows together: each as read, their candidates, and whether all are
    a team's."""

    members: tuple[Known, ...]
    candidates: frozenset[str]
    is_a_teams: bool


_groups: dict[tuple[int, ...], Group] = {}


def group(deployments: Sequence[Deployment]) -> Group:
    """Look up a list of deployments by its objects: LiteLLM replaces the object of an edited one,
    and these are kept, so that no other gets its identity."""
    key = tuple(map(id, deployments))
    try:
        return _groups[key]
    except KeyError:
        pass
    if len(_groups) >= GROUPS:
        _groups.clear()
    found = _groups[key] = _group(deployments)
    return found


def _group(deployments: Sequence[Deployment]) -> Group:
    members = tuple(
        Known(
            each,
            deployment_id(each),
            candidate_of(each),
            user_order(each),
            str(each["litellm_params"].get("model", "")).startswith(VLLM),
        )
        for each in deployments
    )
    candidates = frozenset(each.candidate for each in members)
    return Group(members, candidates, all(map(is_a_teams, deployments)))


# A decision in the form of LiteLLM's router: copies of the deployments with an `order`.
#
# The deployments are ranked, not narrowed: the filters that LiteLLM runs after ours (tags, context
# window) still apply, and replicas of the best candidate stay load-balanced.

RANKS = 10_000
"""Upper bound on a zoo's candidates: the user's own `order` counts first, our rank within it."""


def ranked(
    deployments: Sequence[Deployment],
    ranking: Sequence[str],
    tried: Collection[str],
    barred: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Copy all deployments, best first by `order`; those ``tried`` before come last, and behind
    them those that are ``barred``, whatever the user's own `order`.

    ``tried`` and ``barred`` hold deployment ids. Candidates outside the ranking stay behind the
    ranked ones.
    """
    members = group(deployments).members
    last = len(ranking) + 1
    orders = [each.order for each in members] if barred else [0]
    behind = max(orders) - min(orders) + 1 if barred else 0
    found = []
    for deployment, identity, candidate, order, _ in members:
        own = order + behind if identity in barred else order
        rank = ranking.index(candidate) + 1 if candidate in ranking else last
        order = own * 2 * RANKS + (RANKS if identity in tried else 0) + rank
        params = {**deployment["litellm_params"], "order": order}
        found.append({**deployment, "litellm_params": params})
    return found


def led_by(ranked: Sequence[Deployment], identity: str) -> list[Deployment]:
    """Put the deployment with that id first, whatever the user's own order: only it has the state
    or the cache."""
    first = min(map(user_order, ranked), default=0) - 1
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

    If all of that order are ``barred``, the others get that order: a failure elsewhere must not
    send a request to a deployment that cannot take it.
    """
    able = [deployment for deployment in deployments if deployment_id(deployment) not in barred]
    allowed = [deployment for deployment in able if user_order(deployment) == order]
    if barred and not allowed:
        return [_with_order(deployment, order) for deployment in able]
    for candidate in ranking:
        own = [deployment for deployment in allowed if candidate_of(deployment) == candidate]
        if own:
            return own
    return allowed or list(deployments)


# Our own calls, of an exploration or a judge, are for one candidate.

exploration_target: ContextVar[str | None] = ContextVar("exploration_target", default=None)
"""Candidate of an exploration call, set in its context: our own filter keeps that one only."""
exploration_barred: ContextVar[frozenset[str]] = ContextVar(
    "exploration_barred", default=frozenset()
)
"""Ids of deployments that cannot take the request, which an exploration call skips."""


def only(
    deployments: Sequence[Deployment], candidate: str, barred: Collection[str] = ()
) -> list[Deployment]:
    """Return the deployments of one candidate that are not ``barred``, for an exploration call."""
    return [
        deployment
        for deployment in deployments
        if candidate_of(deployment) == candidate and deployment_id(deployment) not in barred
    ]


def pinned(deployments: Sequence[Deployment], identity: str | None) -> Sequence[Deployment]:
    """Return only the deployment with that id; all of them if it is not there."""
    found = [deployment for deployment in deployments if deployment_id(deployment) == identity]
    return found or deployments


def first(deployments: Sequence[Deployment]) -> Deployment:
    """Return the deployment that LiteLLM tries first, by `order`, if its own filters keep it."""
    return min(deployments, key=user_order)


def user_order(deployment: Deployment) -> int:
    """Return the deployment's `order` in the user's configuration, 0 if it has none."""
    order = (deployment.get("litellm_params") or {}).get("order")
    order = model_info(deployment).get("order") if order is None else order
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
    """Tell whether LiteLLM serves a deployment to one team only."""
    return model_info(deployment).get("team_id") is not None


def members(
    zoo: str, settings: ZooSettings, model_list: Sequence[Deployment], groups: Groups
) -> list[Deployment]:
    """Find the deployments of a zoo. As in LiteLLM, a `model_name` takes precedence over a routing
    group of that name."""
    names = member_groups(zoo, model_list, groups) or (zoo,)
    common = [each for each in model_list if not is_a_teams(each)]
    found = [each for each in common if each.get("model_name") in names]
    if settings.teams is TeamModels.INCLUDE:
        teams = filter(is_a_teams, model_list)
        found += [e for e in teams if model_info(e).get("team_public_model_name") == zoo]
    return found


def member_groups(zoo: str, model_list: Sequence[Deployment], groups: Groups) -> tuple[str, ...]:
    """Name the model groups that a zoo consists of; none if it is a `model_name` itself."""
    is_a_name = any(each.get("model_name") == zoo for each in model_list if not is_a_teams(each))
    return () if is_a_name else tuple(groups.get(zoo, ()))


def befores(zoo: Zoo) -> tuple[str, ...]:
    """Name what may have served before, other than LiteLLM's choice within the zoo: its candidates,
    and the groups that it consists of."""
    return (*zoo.candidates, *map(group_value, zoo.groups))


def of_group(deployments: Sequence[Deployment], group: str) -> list[Deployment]:
    """Find the deployments of one model group, in a zoo that consists of several."""
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
