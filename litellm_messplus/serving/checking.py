"""Check of a configuration as at a start, but without starting: `messplus check`.

It refuses what the start refuses, with the same message, since it runs the same code. What the
start accepts but an operator hardly intends is reported as a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.tasks import apart
from litellm_messplus.serving.deployments.deployment import (
    candidate_of,
    members,
    routing_groups,
)
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.judges import check_judges
from litellm_messplus.serving.litellm_seam import proxy_configuration
from litellm_messplus.settings.load import check_start, load_settings, unreadable
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.settings.serving import WatchSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.database import check_place
from litellm_messplus.store.reading import (
    OtherVersionError,
    UnreadableDatabaseError,
    refuse_other_version,
)
from litellm_messplus.switching.modes import Mode

PER = 1_000_000
"""Number of tokens for which prices are shown."""


@dataclass(frozen=True, slots=True)
class CheckedCandidate:
    """One model of a zoo. Prices are in the zoo's unit, for a million tokens."""

    name: str
    replicas: int
    prompt: float
    completion: float
    is_largest: bool


@dataclass(frozen=True, slots=True)
class CheckedZoo:
    """The values that a zoo would run with; ``labels`` are where its labels come from. ``mode``,
    ``share`` and ``before`` are those of the file, which a change made in service overrules."""

    name: str
    policy: str
    cost_unit: str
    mode: Mode
    share: float
    before: str | None
    watch: WatchSettings
    alphas: dict[str, float]
    candidates: tuple[CheckedCandidate, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A whole configuration; ``notes`` are of no zoo."""

    encoder: str
    database: str
    zoos: tuple[CheckedZoo, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, for JSON."""
        plain: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return plain


_ADAPTER: TypeAdapter[Checked] = TypeAdapter(Checked)


def honoured(config: Mapping[str, Any]) -> tuple[MessplusSettings, dict[str, Zoo]]:
    """Read the settings and zoos of a whole proxy configuration.

    Raises ConfigurationError for the first key that cannot be honoured.
    """
    settings = load_settings(config)
    check_place(settings.database)
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
key: they make our ranking of the deployments void."""
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


def checked(path: Path) -> Checked:
    """Return what a start with the configuration in a file would start. Raises ConfigurationError
    as a start would, and if LiteLLM is not configured to load the plugin."""
    try:
        config = proxy_configuration(str(path))
    except ConfigurationError:
        raise
    except Exception as error:
        raise unreadable(path, error) from error
    check_start(config)
    settings, zoos = honoured(config)
    shown = tuple(_zoo(zoo, config) for zoo in zoos.values())
    notes = apart(database_notes(settings.database))
    return Checked(settings.encoder, settings.database, shown, notes)


async def database_notes(database: str) -> tuple[str, ...]:
    """Return notes on the database that a start would open. Raises OtherVersionError if the start
    would refuse its schema."""
    try:
        await refuse_other_version(database)
    except OtherVersionError:
        raise
    except UnreadableDatabaseError as error:
        return (f"the database was not looked at: {error}",)
    return ()


def _zoo(zoo: Zoo, config: Mapping[str, Any]) -> CheckedZoo:
    groups = routing_groups(config.get("router_settings") or {})
    own = members(zoo.name, config.get("model_list") or [], groups)
    return CheckedZoo(
        zoo.name,
        zoo.settings.policy,
        zoo.settings.cost_unit.value,
        zoo.settings.mode,
        zoo.settings.share,
        zoo.settings.before,
        zoo.settings.watch,
        {name: level.alpha for name, level in zoo.levels.items()},
        tuple(
            CheckedCandidate(
                name,
                sum(candidate_of(one) == name for one in own),
                price.prompt * PER,
                price.completion * PER,
                name == zoo.largest,
            )
            for name, price in zoo.prices.items()
        ),
        tuple(label_sources(zoo.settings)),
        tuple(_zoo_notes(zoo)),
    )


def label_sources(settings: ZooSettings) -> list[str]:
    """Return the names of the sources of a zoo's labels."""
    found = [*settings.labels.sources]
    if (buying := settings.buy_labels) is not None:
        found.append(f"{buying.how}:{buying.judge or 'largest'}")
    return found


def _zoo_notes(zoo: Zoo) -> list[str]:
    notes = []
    if label_sources(zoo.settings) == ["feedback"]:
        notes.append(
            "labels come from feedback alone: after 64 requests without any, the largest serves"
        )
    free = [name for name, price in zoo.prices.items() if price.lowest() == 0.0 == price.of(1, 1)]
    if len(free) > 1:
        notes.append(f"cost nothing, so they cannot be told apart by cost: {', '.join(free)}")
    half = [
        name for name, price in zoo.prices.items() if bool(price.prompt) != bool(price.completion)
    ]
    if half:
        notes.append(
            "prompts or answers cost nothing, for a price that is left out is zero: "
            f"{', '.join(half)}"
        )
    return notes
