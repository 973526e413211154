"""How far each zoo is switched on, and the forecast of routing it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.state.entries import Rule
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.forecast import Forecast, Range, forecast
from litellm_messplus.switching.modes import Mode, is_before, promise_of


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """The mode of one zoo, who set it, when and why; ``forecast`` is of routing, None where nothing
    was decided aside."""

    zoo: str
    mode: Mode
    share: float
    before: str | None
    by: str
    reason: str
    at: datetime
    is_returned: bool
    forecast: Forecast | None


async def read_switches(
    database: AsyncEngine,
    modes: Mapping[str, ModeRow],
    logged: Iterable[tuple[str, str]],
) -> tuple[SwitchStatus, ...]:
    """Read the forecast of each zoo whose mode was ever set; ``logged`` are the service levels of
    the log, with their streams. Raises SQLAlchemyError."""
    levels: dict[str, set[str]] = {zoo: set() for zoo in modes}
    watched = set()
    for zoo, level in logged:
        if zoo in levels:
            levels[zoo].add(promise_of(level))
            if is_before(level):
                watched.add(zoo)
    found = []
    for zoo, row in sorted(modes.items()):
        told = None
        if zoo in watched:
            log = ObservedLog(database, zoo, sorted(levels[zoo]), Rule())
            told = await asyncio.to_thread(forecast, await log.aside())  # thousands of requests
        found.append(_switch(row, told))
    return tuple(found)


def _switch(row: ModeRow, told: Forecast | None) -> SwitchStatus:
    return SwitchStatus(
        zoo=row.zoo,
        mode=row.zoo_mode.mode,
        share=row.share,
        before=row.before,
        by=row.by,
        reason=row.reason,
        at=row.at,
        is_returned=row.is_returned,
        forecast=told if told is not None and told.requests else None,
    )


def switch_lines(switches: Iterable[SwitchStatus]) -> Iterator[str]:
    """Write one line for each zoo that is not on."""
    for each in switches:
        if each.mode is Mode.ON:
            continue
        share = f" of {each.share:.3g}" if each.mode is Mode.CANARY else ""
        yield f"{each.zoo}: {each.mode}{share}, before {each.before}{_told(each.forecast)}"


def _told(found: Forecast | None) -> str:
    if found is None:
        return ""
    parts = []
    if found.satisfaction is not None:
        parts.append(f"{_percent(found.satisfaction)} satisfied")
    if found.cost is not None:
        cost = found.cost
        parts.append(f"{cost.estimate:.3g} a request ({cost.low:.3g} to {cost.high:.3g})")
    return f"; routing is forecast at {', '.join(parts)}" if parts else "; no forecast yet"


def _percent(found: Range) -> str:
    low, high = 100.0 * found.low, 100.0 * found.high
    return f"{100.0 * found.estimate:.1f} % ({low:.1f} to {high:.1f} %)"
