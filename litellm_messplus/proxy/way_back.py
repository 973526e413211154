"""The automatic way back: whether a zoo must return to what served before, and who is told."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.proxy.modes import (
    LiveModes,
    ModeChanges,
    StaleRevisionError,
    observed_log,
    told_if_possible,
)
from litellm_messplus.runtime import Counters
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.zoo_modes import WAY_BACK, ModeRow
from litellm_messplus.switching.modes import Mode, ZooMode
from litellm_messplus.switching.way_back import missed_too_often, reason_to_return
from litellm_messplus.tasks import Periodic

logger = logging.getLogger("litellm_messplus")

LOOK_SECONDS = 30.0
"""Between two looks. The tests allow any number of them."""
WEBHOOK_TRIES = 3
WEBHOOK_SECONDS = 10.0
"""How long the address may take, each time that it is tried."""


class WayBack:
    """The watch over zoos that have something to return to, one a worker: of several that see a
    reason, the first to write it returns the zoo, for all. It stays so until an administrator acts.
    """

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        modes: LiveModes,
        changes: ModeChanges,
        counters: Counters,
        webhook: str | None,
    ) -> None:
        self._database = database
        self._engines = engines
        self._modes = modes
        self._changes = changes
        self._counters = counters
        self._webhook = webhook

    def start(self, periodic: Periodic) -> None:
        """Begin to look, in the running event loop."""
        failed = "nobody looked for a way back"
        periodic.every(LOOK_SECONDS, self.look, "way_back_failures", failed, first=LOOK_SECONDS)

    async def look(self) -> None:
        """Return the zoos that must. Raises SQLAlchemyError or TimeoutError."""
        for zoo, mode in dict(self._modes.now).items():
            if mode.can_return:
                reason = await self._reason(zoo)
                if reason is not None:
                    await self._return(zoo, mode, reason)

    async def _reason(self, zoo: str) -> str | None:
        found = missed_too_often(list(self._modes.marks[zoo]))
        if found is not None:
            return found
        served = await self._log(zoo).served(self._since(zoo))
        return await asyncio.to_thread(reason_to_return, served)

    def _log(self, zoo: str) -> ObservedLog:
        return observed_log(self._database, zoo, self._engines[zoo].zoo.settings)

    def _unread(self, words: str) -> None:
        self._counters.failure("forecasts_unread", words)

    def _since(self, zoo: str) -> datetime | None:
        row = self._modes.rows.get(zoo)
        return None if row is None else row.at

    async def _return(self, zoo: str, mode: ZooMode, reason: str) -> None:
        wanted = replace(mode, mode=Mode.WATCH)
        told = await told_if_possible(self._log(zoo), self._since(zoo), self._unread)
        try:
            row = await self._changes.change(zoo, wanted, WAY_BACK, reason, told)
        except StaleRevisionError:
            return  # another worker was first, or an administrator
        self._counters.add("zoos_returned")
        logger.warning(
            "zoo %s returned to %s: %s; resume with: messplus zoo %s --mode %s",
            *(zoo, mode.before, reason, zoo, mode.mode),
        )
        if self._webhook is not None:
            await self._tell(self._webhook, _event(row, mode))

    async def _tell(self, address: str, event: dict[str, Any]) -> None:
        """Send it to the operator's address, a few times where that fails."""
        for number in range(1, WEBHOOK_TRIES + 1):
            try:
                async with httpx.AsyncClient(timeout=WEBHOOK_SECONDS) as client:
                    (await client.post(address, json=event)).raise_for_status()
                return
            except httpx.HTTPError:
                self._counters.failure("webhook_failures", f"try {number} to tell of a return")
                await asyncio.sleep(number)


def _event(row: ModeRow, was: ZooMode) -> dict[str, Any]:
    """Describe a return for a webhook."""
    return {
        "event": "zoo_returned",
        "zoo": row.zoo,
        "from": was.mode.value,
        "before": row.before,
        "reason": row.reason,
        "revision": row.revision,
        "at": row.at.isoformat(),
        "text": f"zoo {row.zoo} returned to {row.before}: {row.reason}",
    }
