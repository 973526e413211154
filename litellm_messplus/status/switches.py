"""How far each zoo is switched on, and the forecast of routing it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.tally import taken
from litellm_messplus.figures.words import around, figure, percent, percent_around
from litellm_messplus.runtime.vocabulary import is_before, promise_of
from litellm_messplus.status.second_answers import SecondAnswers, read_second_answers
from litellm_messplus.store import zoo_modes
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.forecast import Forecast, Happened, forecast
from litellm_messplus.switching.modes import Mode

CHANGES = 20
"""Newest changes of a zoo that are searched for the one that routed."""


@dataclass(frozen=True, slots=True)
class Switched:
    """The newest change of a zoo after which requests were routed: the ``forecast`` at that time,
    and what ``happened`` until the next change, or until now."""

    mode: Mode
    at: datetime
    until: datetime | None
    forecast: Forecast | None
    happened: Happened | None


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """The mode of one zoo, who set it, when and why; ``forecast`` is of routing, None if nothing
    was decided in parallel; ``switched`` is None if no request was ever routed by a change.
    ``second_answers`` is the forecast of reading answers, None if too little is known."""

    zoo: str
    mode: Mode
    share: float
    before: str | None
    by: str
    reason: str
    at: datetime
    is_returned: bool
    forecast: Forecast | None
    switched: Switched | None = None
    second_answers: SecondAnswers | None = None


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
        expected, reads, log = None, None, ObservedLog(database, zoo, sorted(levels[zoo]))
        if zoo in watched:
            made = await asyncio.to_thread(forecast, await log.aside())  # thousands of requests
            expected = made if made.requests else None
            async with database.connect() as connection:
                reads = await read_second_answers(connection, zoo)
        switched = await _switched(await zoo_modes.history(database, zoo, CHANGES), log)
        mode = row.zoo_mode.mode
        known = {"forecast": expected, "switched": switched, "second_answers": reads}
        found.append(taken(SwitchStatus, row, mode=mode, **known))
    return tuple(found)


async def _switched(changes: Sequence[ModeRow], log: ObservedLog) -> Switched | None:
    """Find the newest change that routed; the next change has its outcome, else the log."""
    after = None
    for row in changes:
        if row.zoo_mode.mode is not Mode.WATCH:
            if after is None:
                now = await log.happened(row.at)
                came = now if now.requests else None
            else:
                came = None if after.happened is None else Happened(**after.happened)
            return Switched(
                mode=row.zoo_mode.mode,
                at=row.at,
                until=None if after is None else after.at,
                forecast=None if row.forecast is None else Forecast.of(row.forecast),
                happened=came,
            )
        after = row
    return None


def switch_lines(switches: Iterable[SwitchStatus]) -> Iterator[str]:
    """Write one line for each zoo that is not on, and one for each forecast of a switch, next to
    the outcome."""
    for each in switches:
        if each.mode is not Mode.ON:
            share = f" of {each.share:.3g}" if each.mode is Mode.CANARY else ""
            reads = "" if each.second_answers is None else f"; {each.second_answers.words}"
            routed = ""
            if each.forecast is not None:
                routed = f"; forecast of routing: {forecast_in_words(each.forecast)}"
            yield f"{each.zoo}: {each.mode}{share}, before {each.before}{routed}{reads}"
        switched = each.switched
        if switched is not None and switched.forecast is not None:
            came = "nothing yet"
            if switched.happened is not None:
                came = happened_in_words(switched.happened)
            words = f"{forecast_in_words(switched.forecast)}; happened: {came}"
            yield f"{each.zoo}: {switched.mode} was forecast: {words}"


def forecast_in_words(found: Forecast) -> str:
    """Write a forecast as one line."""
    parts = ["satisfaction not known yet (a label_rate buys more labels)", "cost not known yet"]
    if (rate := found.satisfaction) is not None:
        parts[0] = f"{percent_around(rate.estimate, rate.low, rate.high)} satisfied"
    if (cost := found.cost) is not None:
        parts[1] = f"{around(cost.estimate, cost.low, cost.high)} a request"
    if (saved := found.would_have_saved) is not None:
        share = percent_around(saved.estimate, saved.low, saved.high)
        parts.append(f"would have saved {share} of always calling the largest, before labels")
    return f"{', '.join(parts)}, from {found.requests} requests, {found.called} judged"


def happened_in_words(found: Happened) -> str:
    """Write what was routed as one line."""
    rate = "not judged"
    if found.satisfaction is not None:
        rate = f"{percent(found.satisfaction)} satisfied"
    cost = "cost not known" if found.cost is None else figure(found.cost, "a request")
    return f"{rate}, {cost}, {found.requests} requests"
