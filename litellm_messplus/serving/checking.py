"""Check of a configuration as at a start, but without starting: `messplus check`.

It refuses what the start refuses, with the same message, since it runs the same code. What the
start accepts but an operator hardly intends is reported as a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from litellm_messplus.runtime import parquet
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.deployment import (
    candidate_of,
    deployment_id,
    members,
    routing_groups,
)
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.deployments.prices import measured_deployments
from litellm_messplus.serving.judges import check_judges
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.settings.serving import WatchSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.reading import OtherVersionError, UnreadableDatabaseError, revision_of
from litellm_messplus.store.schema import newest
from litellm_messplus.switching.modes import Mode

CALLBACK = "litellm_messplus.plugin.instance"
"""The name that `litellm_settings.callbacks` must list, or LiteLLM never loads the plugin."""
PER = 1_000_000
"""Number of tokens for which prices are shown."""


@dataclass(frozen=True)
class Honoured:
    """The settings and zoos of a valid configuration; ``measured`` are the deployments whose
    energy is measured."""

    settings: MessplusSettings
    zoos: dict[str, Zoo]
    measured: Any


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


def honoured(config: Mapping[str, Any]) -> Honoured:
    """Read the settings and zoos of a whole proxy configuration.

    Raises ConfigurationError for the first key that cannot be honoured.
    """
    settings = load_settings(config)
    create_engine(settings.database)  # validates the URL, without connecting
    model_list = config.get("model_list") or []
    zoos = configured_zoos(settings, config)
    check_judges(settings, model_list)
    _check_archive(settings)
    check_affinity(list(zoos), config.get("router_settings") or {})
    return Honoured(settings, zoos, measured_deployments(zoos, model_list))


def _check_archive(settings: MessplusSettings) -> None:
    archive = settings.retention.archive if settings.retention is not None else None
    if archive is not None and not parquet.is_installed():
        raise ConfigurationError(
            "messplus.retention.archive", archive, f"nothing without an extra: {parquet.INSTALL}"
        )


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


def checked(config: Mapping[str, Any]) -> Checked:
    """Return what the configuration would start with. Raises ConfigurationError as a start would,
    and if LiteLLM is not configured to load the plugin."""
    callbacks = (config.get("litellm_settings") or {}).get("callbacks") or []
    given = [callbacks] if isinstance(callbacks, str) else list(callbacks)
    if CALLBACK not in given:
        raise ConfigurationError(
            "litellm_settings.callbacks", given, f"a list with {CALLBACK}, which loads the plugin"
        )
    found = honoured(config)
    zoos = tuple(_zoo(zoo, config) for zoo in found.zoos.values())
    return Checked(found.settings.encoder, found.settings.database, zoos, tuple(_notes(config)))


LOOK_SECONDS = 5.0
"""Seconds that a database may take to return which migrations it has."""


async def database_notes(database: str) -> tuple[str, ...]:
    """Return notes on the database that a start would open. Raises OtherVersionError if the start
    would refuse its schema."""
    try:
        found = await revision_of(database, LOOK_SECONDS)
    except OtherVersionError:
        raise
    except UnreadableDatabaseError as error:
        return (f"the database was not looked at: {error}",)
    if found in (None, newest()):
        return ()
    return (
        f"the start migrates the database from {found} to {newest()}, and there is no way back but "
        "a backup: docs/upgrade.md",
    )


def _zoo(zoo: Zoo, config: Mapping[str, Any]) -> CheckedZoo:
    groups = routing_groups(config.get("router_settings") or {})
    own = members(zoo.name, zoo.settings, config.get("model_list") or [], groups)
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
        tuple(_labels(zoo.settings)),
        tuple(_zoo_notes(zoo, own)),
    )


def _labels(settings: ZooSettings) -> list[str]:
    found = [*settings.labels.sources]
    if (buying := settings.buy_labels) is not None:
        found.append(f"{buying.how}:{buying.judge or 'largest'}")
    return found


def _zoo_notes(zoo: Zoo, own: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    if _labels(zoo.settings) == ["feedback"]:
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
    ids = [deployment_id(one) for one in own if (one.get("model_info") or {}).get("id")]
    if len(set(ids)) < len(ids):
        notes.append("two deployments have the same model_info.id: LiteLLM keeps one of them")
    return notes


def _notes(config: Mapping[str, Any]) -> list[str]:
    key = (config.get("general_settings") or {}).get("master_key")
    if key:
        return []
    return [
        "general_settings.master_key is not set: administrators' routes need LITELLM_MASTER_KEY"
    ]
