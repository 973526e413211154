"""The current modes of the zoos: read at a start, followed, changed by administrators, and returned
to watching if the promise or the service suffers."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.engine import Engine
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store import zoo_modes
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.zoo_modes import FILE, WAY_BACK, ModeRow
from litellm_messplus.switching.forecast import forecast
from litellm_messplus.switching.modes import Mode, ZooMode
from litellm_messplus.switching.way_back import reason_to_return

FOLLOW_SECONDS = 1.0
"""Seconds between two readings of others' changes."""
ANSWER_SECONDS = 5.0
"""Seconds that the database may take to return the modes."""
READING_SECONDS = 10.0
"""Seconds that reading forecast and outcome may take for a change that does not need them."""


class StaleRevisionError(MessplusError):
    """The mode of a zoo was changed by another client or worker since it was read."""


class LiveModes:
    """The modes by zoo: ``now`` are those in force, ``files`` those of the configuration, and
    ``rows`` the last ones read from the database; while it does not answer, none changes."""

    def __init__(self, zoos: Mapping[str, ZooSettings]) -> None:
        self.settings = zoos
        self.files = {name: zoo.zoo_mode for name, zoo in zoos.items()}
        self.rows: dict[str, ModeRow] = {}
        self.now = dict(self.files)

    def learn(self, rows: Mapping[str, ModeRow]) -> None:
        """Take over the modes of the database that are newer."""
        for zoo, row in rows.items():
            now = self.now.get(zoo)
            if now is not None and row.revision > now.revision:
                self.rows[zoo] = row
                self.now[zoo] = replace(row.zoo_mode, holdout=self.files[zoo].holdout)
                logger.info("zoo %s: %s (%s: %s)", zoo, shown(row.zoo_mode), row.by, row.reason)


def shown(mode: ZooMode) -> str:
    """Format a mode for people."""
    share = f" of {mode.share:.3g}" if mode.mode is Mode.CANARY else ""
    return f"{mode.mode}{share}, before {mode.before or 'nothing'}"


# The forecast of routing a zoo, and the outcome of its routed requests: for the history of modes.


@dataclass(frozen=True, slots=True)
class Comparison:
    """The current forecast, and the outcome of the requests that were routed since a change, both
    as JSON; None if nothing was decided in shadow, or routed."""

    forecast: dict[str, Any] | None = None
    happened: dict[str, Any] | None = None


NOT_COMPARED = Comparison()


async def compare(log: ObservedLog, since: datetime | None) -> Comparison:
    """Read the forecast and the outcome since a change. Raises SQLAlchemyError."""
    found = await asyncio.to_thread(forecast, await log.aside())  # thousands of requests
    happened = await log.happened(since)
    return Comparison(*(asdict(each) if each.requests else None for each in (found, happened)))


async def try_to_compare(
    log: ObservedLog, since: datetime | None, failed: Callable[[str], None]
) -> Comparison:
    """Read both for a change that must not wait for them. If that fails, report it to ``failed``,
    and return neither."""
    try:
        async with asyncio.timeout(READING_SECONDS):
            return await compare(log, since)
    except Exception:
        failed("a change of a mode is logged without its forecast")
        return Comparison()


# Changes of modes.


async def adopt(database: AsyncEngine, modes: LiveModes) -> None:
    """Read the modes at a start; a value of the file that has changed since takes precedence.

    Raises sqlalchemy.exc.SQLAlchemyError if the database does not answer.
    """
    rows = await zoo_modes.newest(database)
    for zoo, wanted in modes.files.items():
        row = rows.get(zoo)
        was = None if row is None else row.file_fingerprint
        is_new = wanted.mode is not Mode.ON if row is None else was != wanted.fingerprint
        if is_new:
            reason = "as configured" if row is None else "the configuration has changed"
            log = ObservedLog(database, zoo, modes.settings[zoo].streams)
            found = await try_to_compare(log, None if row is None else row.at, logger.exception)
            await zoo_modes.append(database, _next(zoo, row, wanted, wanted, FILE, reason, found))
    modes.learn(await zoo_modes.newest(database))


def _next(
    zoo: str,
    row: ModeRow | None,
    wanted: ZooMode,
    file: ZooMode,
    by: str,
    reason: str,
    compared: Comparison,
) -> ModeRow:
    return ModeRow(
        zoo=zoo,
        revision=1 if row is None else row.revision + 1,
        mode=wanted.mode,
        share=wanted.share,
        before=wanted.before,
        by=by,
        reason=reason,
        at=datetime.now(UTC),
        file_fingerprint=file.fingerprint,
        forecast=compared.forecast,
        happened=compared.happened,
    )


class ModeChanges:
    """The changes of modes, those of other workers and those made here; one per worker."""

    def __init__(self, database: AsyncEngine, modes: LiveModes) -> None:
        self._database = database
        self._modes = modes

    def start(self, periodic: Periodic) -> None:
        """Begin to follow others' changes, in the running event loop."""
        failed = "the modes of the zoos were not read"
        periodic.every(FOLLOW_SECONDS, self.look, "modes_unread", failed)

    async def look(self) -> None:
        """Take over others' changes. Raises SQLAlchemyError or TimeoutError."""
        async with asyncio.timeout(ANSWER_SECONDS):
            self._modes.learn(await zoo_modes.newest(self._database))

    async def change(
        self,
        zoo: str,
        wanted: ZooMode,
        by: str,
        reason: str,
        compared: Comparison = NOT_COMPARED,
    ) -> ModeRow:
        """Write a change of the revision in ``wanted``, with the current forecast and the outcome
        under that revision.

        Raises StaleRevisionError if it is not the newest revision any more, and SQLAlchemyError or
        TimeoutError if the database does not take it.
        """
        await self.look()
        newest = self._modes.now[zoo].revision
        file = self._modes.files[zoo]
        row = _next(zoo, self._modes.rows.get(zoo), wanted, file, by, reason, compared)
        if wanted.revision != newest or not await zoo_modes.append(self._database, row):
            raise StaleRevisionError(
                f"revision {wanted.revision} of zoo {zoo} is not its newest any more: read it again"
            )
        self._modes.learn({zoo: row})
        return row


# The automatic way back: whether a zoo must return to what served before.

LOOK_SECONDS = 30.0
"""Seconds between two checks. The statistical tests allow any number of them."""


@dataclass(eq=False, repr=False)
class WayBack:
    """The watch over zoos that have something to return to, one per worker: the first worker to
    write a reason returns the zoo, for all. It stays returned until an administrator acts.
    """

    database: AsyncEngine
    engines: Mapping[str, Engine]
    modes: LiveModes
    changes: ModeChanges
    counters: Counters

    def start(self, periodic: Periodic) -> None:
        """Begin the checks, in the running event loop."""
        failed = "no way back was looked for"
        periodic.every(LOOK_SECONDS, self.look, "way_back_failures", failed, first=LOOK_SECONDS)

    async def look(self) -> None:
        """Return the zoos that must. Raises SQLAlchemyError or TimeoutError."""
        for zoo, mode in dict(self.modes.now).items():
            if mode.can_return:
                reason = await self._reason(zoo)
                if reason is not None:
                    await self._return(zoo, mode, reason)

    async def _reason(self, zoo: str) -> str | None:
        served = await self._log(zoo).served(self._since(zoo))
        return await asyncio.to_thread(reason_to_return, served)

    def _log(self, zoo: str) -> ObservedLog:
        return ObservedLog(self.database, zoo, self.engines[zoo].zoo.settings.streams)

    def _since(self, zoo: str) -> datetime | None:
        row = self.modes.rows.get(zoo)
        return None if row is None else row.at

    async def _return(self, zoo: str, mode: ZooMode, reason: str) -> None:
        wanted = replace(mode, mode=Mode.WATCH)
        failed = partial(self.counters.failure, "forecasts_unread")
        found = await try_to_compare(self._log(zoo), self._since(zoo), failed)
        try:
            await self.changes.change(zoo, wanted, WAY_BACK, reason, found)
        except StaleRevisionError:
            return  # another worker was first, or an administrator
        self.counters.add("zoos_returned")
        logger.warning(
            "zoo %s returned to %s: %s; resume with: messplus zoo %s --mode %s",
            *(zoo, mode.before, reason, zoo, mode.mode),
        )
