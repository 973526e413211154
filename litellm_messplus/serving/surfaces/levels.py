"""The promise that a request counts towards: its key's, else its team's, else the zoo's own; or
that of the level that it asks for, where its key may choose.

What was asked for counts in a stream of its own (`gold:asked`), with the promise of that level: so
no caller changes what the keys of the level are promised.
"""

from collections.abc import Mapping
from typing import Any

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.runtime.vocabulary import level_grants
from litellm_messplus.serving.litellm_seam import request_headers
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL
from litellm_messplus.settings.zoo import Zoo

NAME_KEY = "messplus_service_level"
"""The key of a level's name in the metadata of a key, of a team, and of a request."""
HEADER = "x-messplus-service-level"
"""The header of a request that names a level, which comes before its metadata."""
MAY_KEY = "messplus_callers_may"
"""The key in the metadata of a key or team, in place of the zoo's `callers_may`."""


def service_level(zoo: Zoo, metadata: Mapping[str, Any], counters: Counters) -> ServiceLevel:
    """Find the level that the key's or team's metadata names; count and log an unknown name.

    Only the operator's metadata of the key or the team counts, never what the client sends.
    """
    stated = _stated(metadata, NAME_KEY)
    name = DEFAULT_LEVEL if stated is None else str(stated)
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def granted_level(
    zoo: Zoo, own: ServiceLevel, request: IncomingRequest, counters: Counters
) -> ServiceLevel:
    """Return the level that a request of a key whose level is ``own`` asks for; its own if it asks
    for none, and, which is counted, if it may not have it.

    Raises RefusedError for a level that the zoo does not have."""
    sent = request_headers(request.metadata).get(HEADER, request.client_metadata.get(NAME_KEY))
    if sent is None or sent == own.name:
        return own
    name = str(sent)
    if name not in zoo.levels:
        raise RefusedError(
            f"{HEADER}, or {NAME_KEY} in the metadata: given {name[:64]!r}; "
            f"allowed: {', '.join(zoo.levels)}"
        )
    if name not in _may(zoo, request.metadata):
        counters.add("asked_in_vain")
        return own
    return zoo.streams[level_grants(name)]


def _may(zoo: Zoo, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the levels that a key may choose."""
    stated = _stated(metadata, MAY_KEY)
    if stated is None:
        return zoo.settings.callers_may
    return tuple(map(str, stated if isinstance(stated, list) else (stated,)))


def _stated(metadata: Mapping[str, Any], key: str) -> Any:
    """Return what the operator states of the key, else of its team; None if nothing."""
    for whose in ("user_api_key_metadata", "user_api_key_team_metadata"):
        own = metadata.get(whose)
        found = own.get(key) if isinstance(own, Mapping) else None
        if found is not None:
            return found
    return None
