"""How far each zoo is switched on, and the forecast of routing it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.templates import lines
from litellm_messplus.runtime.vocabulary import is_before, promise_of
from litellm_messplus.status.second_answers import read_second_answers
from litellm_messplus.store import zoo_modes
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.forecast import forecast
from litellm_messplus.switching.modes import Mode, mode_in_words

CHANGES = 20
"""Newest changes of a zoo that are searched for the one that routed."""
UNKNOWN = {"forecast": None, "second_answers": None}
OF_ROW = ("zoo", "mode", "share", "before", "by", "reason", "at", "is_returned")


async def read_switches(
    database: AsyncEngine, modes: Mapping[str, ModeRow], logged: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Read how far each zoo is switched on whose mode was ever set, who set it, when and why;
    ``logged`` are the service levels of the log, with their streams. Raises SQLAlchemyError.

    `forecast` is of routing, None if nothing was decided in parallel; `second_answers` is that of
    reading answers, None if too little is known; `switched` is None if no request was ever routed
    by a change.
    """
    levels: dict[str, set[str]] = {zoo: set() for zoo in modes}
    watched = set()
    for zoo, level in logged:
        if zoo in levels:
            levels[zoo].add(promise_of(level))
            if is_before(level):
                watched.add(zoo)
    found = []
    for zoo, row in sorted(modes.items()):
        log = ObservedLog(database, zoo, sorted(levels[zoo]))
        expected = await read_forecasts(database, zoo, log) if zoo in watched else UNKNOWN
        switched = await _switched(await zoo_modes.history(database, zoo, CHANGES), log)
        found.append(
            {name: getattr(row, name) for name in OF_ROW} | expected | {"switched": switched}
        )
    return found


async def read_forecasts(database: AsyncEngine, zoo: str, log: ObservedLog) -> dict[str, Any]:
    """Read the forecasts of a zoo that serves requests as before: of routing, and of reading
    answers, each None if too little is known. Raises SQLAlchemyError."""
    made = await asyncio.to_thread(forecast, await log.aside())  # thousands of requests
    async with database.connect() as connection:
        reads = await read_second_answers(connection, zoo)
    return {"forecast": made if made.requests else None, "second_answers": reads}


async def _switched(changes: Sequence[ModeRow], log: ObservedLog) -> dict[str, Any] | None:
    """Find the newest change after which requests were routed: its forecast at that time, and what
    happened until the next change, which has it, or until now by the log."""
    after = None
    for row in changes:
        if row.mode != Mode.WATCH:
            came: Any = None if after is None else after.happened
            if after is None and (now := await log.happened(row.at)).requests:
                came = now
            until = None if after is None else after.at
            known = {"mode": row.mode, "at": row.at, "until": until}
            return {**known, "forecast": row.forecast, "happened": came}
        after = row
    return None


def switch_lines(switches: Iterable[Plain]) -> Iterator[str]:
    """Write one line for each zoo that is not on, and one for each forecast of a switch, next to
    the outcome."""
    for each in switches:
        if each["mode"] != Mode.ON:
            mode = mode_in_words(each["mode"], each["share"], each["before"])
            yield f"{each['zoo']}: {'; '.join([mode, *forecasts(each)])}"
        switched = each["switched"]
        if switched is not None and switched["forecast"] is not None:
            came = switched["happened"]
            happened = "nothing yet" if came is None else in_words(HAPPENED, came)
            words = f"{in_words(FORECAST, switched['forecast'])}; happened: {happened}"
            yield f"{each['zoo']}: {switched['mode']} was forecast: {words}"


def forecasts(switch: Plain) -> Iterator[str]:
    """Yield the forecasts of a zoo, in words: of routing, and of reading answers."""
    if switch["forecast"] is not None:
        yield f"forecast of routing: {in_words(FORECAST, switch['forecast'])}"
    if switch["second_answers"] is not None:
        yield in_words(SECOND_ANSWERS, switch["second_answers"])


FORECAST, HAPPENED, SECOND_ANSWERS = "forecast", "happened", "second_answers"


def in_words(what: str, found: Plain) -> str:
    """Write a forecast, or what happened, as one line."""
    return lines(f"status/{what}.j2", **found)[0]
