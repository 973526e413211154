"""Check of a configuration as at a start, but without starting: `messplus check`.

It refuses what the start refuses, with the same message, since it runs the same code. What the
start accepts but an operator hardly intends is reported as a note.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.tasks import apart
from litellm_messplus.serving.configuration import honoured, label_sources
from litellm_messplus.serving.deployments.deployment import (
    candidate_of,
    members,
    routing_groups,
)
from litellm_messplus.serving.litellm_seam import proxy_configuration
from litellm_messplus.settings.load import check_start, unreadable
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
    check_place(settings.database)
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
