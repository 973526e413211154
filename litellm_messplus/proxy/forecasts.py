"""What is forecast of routing a zoo, and what its routed requests came to: for the history of its
modes, whoever changes it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.state.entries import Rule
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.switching.forecast import forecast

READING_SECONDS = 10.0
"""How long reading both may take, where a change does not depend on it."""


@dataclass(frozen=True, slots=True)
class Told:
    """The forecast as of now, and what the requests came to that were routed since a change, both
    as JSON; None where nothing was decided aside, or routed."""

    forecast: dict[str, Any] | None = None
    happened: dict[str, Any] | None = None


def observed_log(database: AsyncEngine, zoo: str, settings: ZooSettings) -> ObservedLog:
    """Return the newest requests of a zoo, to be looked at."""
    levels = (DEFAULT_LEVEL, *settings.service_levels)
    return ObservedLog(database, zoo, levels, Rule(settings.labels.precedence))


async def told(log: ObservedLog, since: datetime | None) -> Told:
    """Read both. Raises SQLAlchemyError."""
    found = await asyncio.to_thread(forecast, await log.aside())  # thousands of requests
    happened = await log.happened(since)
    return Told(
        found.as_dict() if found.requests else None,
        happened.as_dict() if happened.requests else None,
    )


async def told_if_possible(
    log: ObservedLog, since: datetime | None, failed: Callable[[str], None]
) -> Told:
    """Read both for a change that must not wait for them: neither where that fails, of which
    ``failed`` is told in words."""
    try:
        async with asyncio.timeout(READING_SECONDS):
            return await told(log, since)
    except Exception:
        failed("a change of a mode is logged without its forecast")
        return Told()
