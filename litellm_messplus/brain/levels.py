"""The promise that a request counts towards: its key's, else its team's, else the zoo's own; or
that of the level that it asks for, where its key may choose.

What was asked for counts in a stream of its own (`gold:asked`), with the promise of that level: so
no caller changes what the keys of the level are promised.
"""

from litellm_messplus.brain.asked import WantedLevel
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.runtime.vocabulary import level_grants
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL
from litellm_messplus.settings.zoo import Zoo

NAME_KEY = "messplus_service_level"
"""The key of a level's name in the metadata of a key, of a team, and of a request."""
HEADER = "x-messplus-service-level"
"""The header of a request that names a level, which comes before its metadata."""
MAY_KEY = "messplus_callers_may"
"""The key in the metadata of a key or team, in place of the zoo's `callers_may`."""


def service_level(zoo: Zoo, wanted: WantedLevel, counters: Counters) -> ServiceLevel:
    """Find the level that the operator states of the key or team; count and log an unknown name."""
    name = DEFAULT_LEVEL if wanted.stated is None else str(wanted.stated)
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def granted_level(
    zoo: Zoo, own: ServiceLevel, wanted: WantedLevel, counters: Counters
) -> ServiceLevel:
    """Return the level that a request of a key whose level is ``own`` asks for; its own if it asks
    for none, and, which is counted, if it may not have it.

    Raises RefusedError for a level that the zoo does not have."""
    if wanted.sent is None or wanted.sent == own.name:
        return own
    name = str(wanted.sent)
    if name not in zoo.levels:
        raise RefusedError(
            f"{HEADER}, or {NAME_KEY} in the metadata: given {name[:64]!r}; "
            f"allowed: {', '.join(zoo.levels)}"
        )
    if name not in (zoo.settings.callers_may if wanted.may is None else wanted.may):
        counters.add("asked_in_vain")
        return own
    return zoo.streams[level_grants(name)]
