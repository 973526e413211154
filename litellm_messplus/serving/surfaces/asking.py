"""What a request asks for by header or metadata, and what it is granted.

The operator says who may ask for what. What was granted anything counts towards a stream of its own
(`gold:asked`), with the promise of its level: so no caller moves what the keys of a level are
promised. A value that could not be granted to any key is refused, so that no client believes to be
heard that is not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.runtime.vocabulary import level_grants
from litellm_messplus.serving.litellm_seam import request_headers
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import REQUEST_LIMITS
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.rows import storable

LEVEL = "service_level"
REQUESTED = (LEVEL, *REQUEST_LIMITS)
METADATA = {name: f"messplus_{name}" for name in REQUESTED}
"""The keys in a request's metadata."""
HEADERS = {name: f"x-messplus-{name.replace('_', '-')}" for name in REQUESTED}
"""The headers, which come before the metadata."""
MAY_KEY = "messplus_callers_may"
"""The key in the metadata of a key or team, in place of the zoo's `callers_may`."""
LONGEST = 64
"""Most characters that are kept of what a caller asks for."""
MOST = 1e15
"""Largest number that is kept as one."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The promise that a request counts towards, and the ``limits`` that it was granted: the most
    that it may be expected to cost, in the zoo's unit, and to take, in seconds. ``asked`` and
    ``granted`` are as logged; None if it asked for nothing."""

    level: ServiceLevel
    limits: Mapping[str, float] = field(default_factory=dict)
    asked: dict[str, Any] | None = None
    granted: dict[str, Any] | None = None


def grant(zoo: Zoo, own: ServiceLevel, request: IncomingRequest, counters: Counters) -> Granted:
    """Give a request of a key whose level is ``own`` what it asks for and may have; count it if
    that is not all.

    Raises RefusedError if it asks for a level that the zoo does not have, or for no number."""
    asked = _requested(request)
    if not asked:
        return Granted(own)
    wishes = {name: _wish(zoo, name, value, counters) for name, value in asked.items()}
    may = _may(zoo, request.metadata)
    granted = {
        name: wish for name, wish in wishes.items() if (wish if name == LEVEL else name) in may
    }
    if len(granted) < len(asked):
        counters.add("asked_in_vain")
    level = granted.get(LEVEL, own.name)
    limits = {name: granted[name] for name in REQUEST_LIMITS if name in granted}
    is_as_ever = level == own.name and not limits
    return Granted(own if is_as_ever else zoo.streams[level_grants(level)], limits, asked, granted)


def _requested(request: IncomingRequest) -> dict[str, Any]:
    """Read what a request asks for: text of a bounded length, and numbers."""
    headers, metadata = request_headers(request.metadata), request.client_metadata
    found = {name: headers.get(HEADERS[name], metadata.get(METADATA[name])) for name in REQUESTED}
    return {name: _logged(value) for name, value in found.items() if value is not None}


def _logged(value: object) -> Any:
    """Return a number as it is, and anything else as text of a bounded length."""
    if isinstance(value, int | float) and abs(value) < MOST:
        return value
    text = str(value)
    return storable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")


def _wish(zoo: Zoo, name: str, value: Any, counters: Counters) -> Any:
    """Return the level or the number that is asked for. Raises RefusedError if it is none."""
    if name == LEVEL:
        wish, allowed = value if value in zoo.levels else None, " or ".join(zoo.levels)
    else:
        wish, allowed = _positive(value), "a number above zero"
    if wish is None:
        counters.add("asked_wrongly")
        where = f"{HEADERS[name]}, or {METADATA[name]} in the metadata"
        raise RefusedError(f"{where}: given {value!r}; allowed: {allowed}")
    return wish


def _positive(value: Any) -> float | None:
    """Read a number above zero; None for anything else that a client may send."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except ValueError:
        return None
    return found if 0.0 < found < math.inf else None


def _may(zoo: Zoo, metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return what the key may ask for: by its own metadata, else its team's, else by the zoo. A
    promise that counts whole conversations has no choice by request."""
    if zoo.settings.counts_conversations:
        return frozenset()
    for whose in ("user_api_key_metadata", "user_api_key_team_metadata"):
        given = metadata.get(whose)
        stated = given.get(MAY_KEY) if isinstance(given, Mapping) else None
        if stated is not None:
            return frozenset(map(str, stated if isinstance(stated, list) else (stated,)))
    return frozenset(zoo.settings.callers_may)
