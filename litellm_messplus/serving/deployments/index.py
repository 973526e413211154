"""Candidate and price of each deployment, by LiteLLM's id."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from litellm_messplus.costs.price import Price, average
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    Groups,
    arm_of,
    candidate_of,
    deployment_id,
    member_groups,
    members,
    model_info,
    place_of,
    refuse_wildcard,
    routing_groups,
)
from litellm_messplus.serving.deployments.prices import (
    DeploymentPrice,
    deployment_price,
)
from litellm_messplus.serving.litellm_seam import stores_models
from litellm_messplus.serving.surfaces.parameters import PARAMETERS, Effort, effort
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.settings.zoo import FEWEST, Zoo, most_expensive
from litellm_messplus.switching.modes import LITELLM

REMEMBERED = 4096
"""Newest deployments of a zoo that are remembered: late log events name some that are gone."""


class DeploymentIndex:
    """The deployments by LiteLLM's id, learned from its router: the ids exist only once the router
    has been built."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.candidates_of: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """Candidates by zoo and deployment id: a fallback may go from one zoo to another."""
        self.prices: dict[str, DeploymentPrice] = {}
        self.replicas: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """Deployment ids by zoo and candidate."""
        self._remembered = remembered
        self._shown: defaultdict[str, dict[str, Deployment]] = defaultdict(dict)

    def candidate(self, zoo: str, deployment: str | None) -> str | None:
        """Find the candidate that a deployment is a replica of; None if it is not of that zoo."""
        return self.candidates_of[zoo].get(deployment or "")

    def see(self, zoo: str, deployments: Iterable[Deployment], settings: ZooSettings) -> bool:
        """Remember a zoo's deployments as LiteLLM shows them; returns whether any is new or
        changed. One without a price is logged, and gets its candidate's.

        LiteLLM replaces the object of an edited deployment, so the same object means no change.
        """
        shown, has_changed = self._shown[zoo], False
        for deployment in deployments:
            identity = deployment_id(deployment)
            before = shown.get(identity)
            if before is deployment:
                continue
            shown[identity] = deployment
            if before != deployment:
                self._read(zoo, identity, deployment, settings)
                has_changed = True
        return has_changed

    def gone(self, zoo: str, there: Collection[str]) -> None:
        """Note that only the deployments of these ids serve now. The candidates of the others are
        kept, for calls that are still to end."""
        for identity in [each for each in self._shown[zoo] if each not in there]:
            del self._shown[zoo][identity]
            self._part(zoo, identity)
        known = self.candidates_of[zoo]
        while len(known) > max(self._remembered, len(there)):
            oldest = next(each for each in known if each not in there)
            del known[oldest]
            self.prices.pop(oldest, None)

    def candidate_prices(self, zoo: str, deployments: Iterable[Deployment]) -> dict[str, Price]:
        """Return the price of each candidate: the mean over those of its deployments that were
        seen, in their order."""
        found: dict[str, list[Price]] = {}
        for identity in map(deployment_id, deployments):
            priced = self.prices.get(identity)
            if priced is not None:
                found.setdefault(self.candidates_of[zoo][identity], []).append(priced.price)
        return {candidate: average(prices) for candidate, prices in found.items()}

    def _read(self, zoo: str, identity: str, deployment: Deployment, settings: ZooSettings) -> None:
        self._part(zoo, identity)
        candidate = self.candidates_of[zoo][identity] = candidate_of(deployment)
        self.replicas[zoo, candidate].append(identity)
        self.prices.pop(identity, None)
        try:
            self.prices[identity] = deployment_price(deployment, settings)
        except ConfigurationError as error:
            logger.warning("a deployment without a price gets that of its candidate: %s", error)

    def _part(self, zoo: str, identity: str) -> None:
        """Remove a deployment from the replicas of its candidate."""
        key = zoo, self.candidates_of[zoo].get(identity, "")
        if identity in self.replicas.get(key, ()):
            self.replicas[key].remove(identity)
            if not self.replicas[key]:
                del self.replicas[key]


# LiteLLM's `model_list` as zoos: replicas grouped into candidates, each with a price.


def configured_zoos(settings: MessplusSettings, config: Mapping[str, Any]) -> dict[str, Zoo]:
    """Build the zoos of a whole proxy configuration. Raises as ``build_zoos`` does, and for a
    deployment of a zoo that LiteLLM cannot tell from another."""
    model_list = config.get("model_list") or []
    groups = routing_groups(config.get("router_settings") or {})
    zoos = build_zoos(settings, model_list, groups, may_wait=stores_models(config))
    for deployment in (each for name in zoos for each in members(name, model_list, groups)):
        given, info = model_info(deployment).get("id"), model_info(deployment)
        for other in model_list:
            if other is deployment or _identity(other) != _identity(deployment):
                continue
            if given is not None or model_info(other) != info:
                raise ConfigurationError(
                    f"{place_of(deployment)}: model_info.id",
                    f"{given or 'none'}, as for {place_of(other)}",
                    "an id of its own: LiteLLM takes deployments of one id for one, at one price",
                )
    return zoos


def _identity(deployment: Deployment) -> object:
    """Return what LiteLLM takes for a deployment's id, or makes one of."""
    given = model_info(deployment).get("id")
    made = deployment.get("model_name"), deployment["litellm_params"]
    return made if given is None else str(given)


def build_zoos(
    settings: MessplusSettings,
    model_list: Sequence[Deployment],
    groups: Groups | None = None,
    *,
    may_wait: bool = False,
) -> dict[str, Zoo]:
    """Build the configured zoos over the proxy's `model_list`. A zoo ``may_wait`` for its models if
    LiteLLM stores further ones in its database.

    Raises ConfigurationError for a zoo without deployments or with one candidate, unless it may
    wait, and for a deployment without a price in the zoo's unit.
    """
    groups = groups or {}
    return {
        name: _build_zoo(name, zoo, model_list, groups, may_wait)
        for name, zoo in settings.zoos.items()
    }


def _build_zoo(
    name: str,
    settings: ZooSettings,
    model_list: Sequence[Deployment],
    groups: Groups,
    may_wait: bool,
) -> Zoo:
    refuse_wildcard(name)
    grouped: dict[str, list[Price]] = {}
    arms: dict[str, tuple[str, Effort]] = {}
    for deployment in members(name, model_list, groups):
        price, candidate = deployment_price(deployment, settings).price, candidate_of(deployment)
        grouped.setdefault(candidate, []).append(price)
        arms[candidate] = deployment["litellm_params"]["model"], effort(arm_of(deployment))
    prices = {candidate: average(prices) for candidate, prices in grouped.items()}
    anchor = _most_effort(prices, arms)
    zoo = Zoo(name, settings, prices, anchor=anchor, groups=member_groups(name, model_list, groups))
    if len(prices) >= FEWEST or not may_wait:
        _check_candidates(zoo, model_list, may_wait)
    else:
        _check_waiting(name, settings)
    return zoo


def _most_effort(prices: Mapping[str, Price], arms: Mapping[str, tuple[str, Effort]]) -> str | None:
    """Return the arm with the most effort if all candidates of the highest price are arms of one
    model, as they have the same price; None if not, or if two make the same effort."""
    highest = prices.get(most_expensive(prices))
    found = {name: arms[name] for name, price in prices.items() if price == highest}
    most = [name for name, arm in found.items() if arm == max(found.values())]
    is_one_model = len({model for model, _ in found.values()}) == 1
    return most[0] if is_one_model and len(found) > len(most) == 1 else None


def _check_candidates(zoo: Zoo, model_list: Sequence[Deployment], may_wait: bool) -> None:
    key, settings, prices = f"messplus.zoos.{zoo.name}", zoo.settings, zoo.prices
    if not prices:
        names = ", ".join(sorted({str(d.get("model_name")) for d in model_list})) or "none"
        raise ConfigurationError(key, zoo.name, f"a `model_name` of `model_list` (there: {names})")
    if len(prices) < FEWEST:
        only = ", ".join(prices)
        raise ConfigurationError(
            key,
            f"one candidate ({only})",
            "at least two different models behind the name, or arms of one: deployments that "
            f"differ in {' or '.join(PARAMETERS)}",
        )
    if settings.largest is not None and settings.largest not in prices and not may_wait:
        raise ConfigurationError(f"{key}.largest", settings.largest, " or ".join(prices))
    _check_before(key, settings, zoo.befores, may_wait)
    if not zoo.has_anchor and len(set(prices.values())) == 1:
        raise ConfigurationError(
            f"{key}.largest", "nothing, and all prices are equal", " or ".join(prices)
        )


def _check_waiting(name: str, settings: ZooSettings) -> None:
    """Refuse settings that need the largest candidate, which is still unknown."""
    buying = settings.buy_labels
    if buying is not None and buying.judge is None and settings.largest is None:
        raise ConfigurationError(
            f"messplus.zoos.{name}.buy_labels.judge",
            "nothing, in a zoo that waits for its models",
            f"a `model_name` that judges, or `messplus.zoos.{name}.largest`",
        )


def _check_before(key: str, settings: ZooSettings, known: Sequence[str], may_wait: bool) -> None:
    """Raise ConfigurationError if `before` is missing under a mode that needs it, or is unknown; a
    zoo that may wait accepts the name of a model that is still to come."""
    expected = [settings.before] if may_wait and settings.before is not None else []
    if settings.zoo_mode.problem([*known, *expected]) is not None:
        allowed = f"{LITELLM}, or what served before: {', '.join(known)}"
        given = settings.before or f"nothing, under `mode: {settings.mode}`"
        raise ConfigurationError(f"{key}.before", given, allowed)
