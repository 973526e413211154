"""Which promise a request counts towards: its key's, else its team's, else the zoo's own."""

from collections.abc import Mapping
from typing import Any

from litellm_messplus.counters import Counters
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ServiceLevel
from litellm_messplus.zoo import Zoo

NAME_KEY = "messplus_service_level"


def service_level(zoo: Zoo, metadata: Mapping[str, Any], counters: Counters) -> ServiceLevel:
    """The level that the key's or team's metadata names; an unknown name is counted and logged.

    Only what the operator wrote on the key or the team counts, never what the client sends.
    """
    name = _named(metadata.get("user_api_key_metadata")) or _named(
        metadata.get("user_api_key_team_metadata")
    )
    if name is None:
        return zoo.levels[DEFAULT_LEVEL]
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def _named(metadata: object) -> str | None:
    found = metadata.get(NAME_KEY) if isinstance(metadata, Mapping) else None
    return None if found is None else str(found)
