"""One of LiteLLM's deployments, from `model_list` or its router: its candidate, order and zoo; and
which of them are tried next, and which passed over."""

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import litellm

from litellm_messplus.brain.messages import Pin, Replica
from litellm_messplus.runtime.errors import REFUSALS, ConfigurationError
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.serving.deployments import deployment
from litellm_messplus.serving.surfaces.parameters import Values, arm_name, read_parameters
from litellm_messplus.switching.modes import LITELLM, group_of

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
    """Deployments that LiteLLM shows together: each as read here and as the brain sees it, their
    candidates, and whether all are a team's."""

    members: tuple[Known, ...]
    replicas: tuple[Replica, ...]
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
    replicas = tuple(Replica(each.identity, each.candidate, each.is_vllm) for each in members)
    candidates = frozenset(each.candidate for each in members)
    return Group(members, replicas, candidates, all(map(is_a_teams, deployments)))


# A decision in the form of LiteLLM's router: the deployments to try next, and no others.
#
# A filter can only remove candidates (LiteLLM's contract, and all that its router of 1.110 reads).
# LiteLLM balances among those that are left, and asks again at every further attempt.


def to_try(
    deployments: Sequence[Deployment],
    ranking: Sequence[str],
    failed: Collection[str] = (),
    barred: Collection[str] = (),
    order: int | None = None,
) -> list[Deployment]:
    """Return the deployments to try next: the replicas of the best candidate that have not
    ``failed`` this request and are not ``barred``, within the first of the user's own orders that
    has one. ``failed`` and ``barred`` hold deployment ids.

    Once all that can take the request have failed it, they are tried again; barred ones only if
    all are barred. Candidates outside the ranking follow the ranked ones, as LiteLLM balances them.
    With the ``order`` that LiteLLM falls back to, none is returned if all of that order are barred:
    it goes on with its next fallback.
    """
    members = group(deployments).members
    able = [each for each in members if each.identity not in barred] or members
    if order is not None:
        able = [each for each in able if each.order == order]
    left = [each for each in able if each.identity not in failed] or able
    first = min((each.order for each in left), default=0)
    left = [each for each in left if each.order == first]
    for candidate in ranking:
        replicas = [each.deployment for each in left if each.candidate == candidate]
        if replicas:
            return replicas
    return [each.deployment for each in left]


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


def held(
    deployments: Sequence[Deployment], pin: Pin, failed: Collection[str]
) -> Sequence[Deployment]:
    """Return the deployments among which a held request stays: its own whatever the user's order,
    unless that has ``failed`` the request and another has what it continues; else those of its
    candidate if no other could serve it; else all."""
    own = pinned(deployments, pin.deployment)
    if len(own) == 1 and (pin.is_alone or pin.deployment not in failed):
        return own
    return (pin.is_bound and only(deployments, pin.candidate)) or deployments


UNORDERED = sys.maxsize
"""The order of a deployment without one: LiteLLM tries it after all that have one."""


def user_order(deployment: Deployment) -> int:
    """Return the deployment's `order` in the user's configuration."""
    order = (deployment.get("litellm_params") or {}).get("order")
    order = model_info(deployment).get("order") if order is None else order
    return UNORDERED if order is None else int(order)


Groups = Mapping[str, Sequence[str]]
"""The model names of each of LiteLLM's routing groups."""


def routing_groups(router_settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read the routing groups of a configuration."""
    groups = router_settings.get("routing_groups") or []
    return {str(each.get("group_name")): tuple(each.get("models") or ()) for each in groups}


def is_a_teams(deployment: Deployment) -> bool:
    """Tell whether LiteLLM serves a deployment to one team only."""
    return model_info(deployment).get("team_id") is not None


def members(zoo: str, model_list: Sequence[Deployment], groups: Groups) -> list[Deployment]:
    """Find the deployments of a zoo, which are no team's alone. As in LiteLLM, a `model_name` takes
    precedence over a routing group of that name."""
    names = member_groups(zoo, model_list, groups) or (zoo,)
    return [e for e in model_list if e.get("model_name") in names and not is_a_teams(e)]


def member_groups(zoo: str, model_list: Sequence[Deployment], groups: Groups) -> tuple[str, ...]:
    """Name the model groups that a zoo consists of; none if it is a `model_name` itself."""
    is_a_name = any(each.get("model_name") == zoo for each in model_list if not is_a_teams(each))
    return () if is_a_name else tuple(groups.get(zoo, ()))


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


# Deployments that fail every request, and are passed over for a minute.
#
# LiteLLM cools a deployment down for most errors, and tries another within the request. For the
# status of a bad request it does neither, though it may tell of an account without credit: each
# request would get the error for as long as that lasts.

LASTING = REFUSALS | {401, 402, 403, 404}
"""The HTTP statuses that LiteLLM does not try again within a request, or not cool down."""
MOST_FAILURES = 3
"""Requests in a row that a deployment may fail until it is passed over."""
PASSED_OVER_SECONDS = 60.0
"""Seconds until a request tries it again."""
MOST_FAILING = 4096
"""Deployments of which that is known."""


class Failing:
    """The deployments that have failed their last requests, as the workers that share a file have
    seen it. Without a file, or where it cannot be written, a worker goes by its own requests."""

    def __init__(
        self,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
        seconds: float = PASSED_OVER_SECONDS,
    ) -> None:
        self._path, self._clock, self._seconds = path, clock, seconds
        self._failures: dict[str, tuple[int, float]] = {}
        """How many in a row, and until when it is passed over, by LiteLLM's id."""
        self._read: tuple[int, int] | None = None
        """The file that was read last: its inode and the time of its last change."""

    def failed(self, identity: str | None, failure: Failure | None, error: BaseException) -> None:
        """Note a request that got an error from a deployment."""
        is_lasting = getattr(error, "status_code", None) in LASTING
        if identity is not None and failure is Failure.UPSTREAM and is_lasting:
            count, _ = self._known().get(identity, (0, 0.0))
            is_over = count + 1 >= MOST_FAILURES
            self._note(identity, (count + 1, self._clock() + self._seconds * is_over))

    def answered(self, identity: str | None) -> None:
        """Note an answer of a deployment."""
        if identity in self._known():
            self._note(identity, None)

    def without(self, deployments: Sequence[Deployment]) -> Sequence[Deployment]:
        """Leave out the deployments that are passed over now, unless that leaves none."""
        now = self._clock()
        over = {name for name, (_, until) in self._known().items() if until > now}
        return [each for each in deployments if deployment_id(each) not in over] or deployments

    def tried(self, identities: Collection[str]) -> None:
        """Note which deployments a request tries: the others wait for what becomes of it."""
        for identity in self._failures.keys() & identities:
            count, _ = self._failures[identity]
            if count >= MOST_FAILURES:
                self._note(identity, (count, self._clock() + self._seconds))

    def _known(self) -> dict[str, tuple[int, float]]:
        """Return what all workers know, read anew if one has changed it."""
        try:
            if self._path is None:
                return self._failures
            found = os.stat(self._path)
            if (seen := (found.st_ino, found.st_mtime_ns)) != self._read:
                self._read = seen
                read = json.loads(self._path.read_bytes())
                self._failures = {str(k): (int(n), float(at)) for k, (n, at) in read.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            pass  # none has failed yet, or it is no file of ours
        return self._failures

    def _note(self, identity: str, now: tuple[int, float] | None) -> None:
        """Change what is known of a deployment, for all workers; the oldest is forgotten."""
        self._failures.pop(identity, None)
        if now is not None:
            self._failures[identity] = now
        while len(self._failures) > MOST_FAILING:
            del self._failures[next(iter(self._failures))]
        if self._path is not None:
            with suppress(OSError):
                written = Path(f"{self._path}.{os.getpid()}")
                written.write_text(json.dumps(self._failures))
                os.replace(written, self._path)


# What served before the router: all deployments, those of a group, or those of a candidate.


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
