"""The routes by which administrators see and change how far a zoo has been switched on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.modes import LiveModes, ModeChanges, compare
from litellm_messplus.brain.routes import Check, refusals
from litellm_messplus.core.engine import Engine
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.serving import CanaryShare
from litellm_messplus.status.second_answers import SecondAnswers, read_second_answers
from litellm_messplus.store import zoo_modes
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.rows import STORABLE
from litellm_messplus.store.zoo_modes import FILE, ModeRow
from litellm_messplus.switching.modes import Mode, ZooMode

SHOWN = 20
"""Number of changes of a zoo that are shown, the newest."""
SHOWING_SECONDS = 10.0
"""Seconds that the reading of a zoo may take."""
ADMINISTRATOR = "administrator"
"""The author of a change without a key's hash: by the master key, or a session of the page."""


class Change(BaseModel):
    """The body of `PATCH /messplus/zoos/{zoo}`; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    revision: int = Field(
        ge=0, description="The revision that was read: if another is in force, it stays."
    )
    mode: Mode | None = Field(default=None, description="`watch`, `canary` or `on`.")
    share: CanaryShare | None = Field(
        default=None, description="The share of conversations that is routed under `canary`."
    )
    before: str | None = Field(
        default=None,
        description="What serves the others: `litellm`, a candidate, or `group:` and the "
        "`model_name` of a member, if the zoo is a routing group.",
    )
    reason: Annotated[str, Field(max_length=1000, pattern=STORABLE)] = Field(
        default="", description="The reason, shown in the history."
    )


class ModeChange(BaseModel):
    """One change of a zoo's mode: who made it, why, the forecast at that time, and what happened
    under it: the outcome of the requests routed until the next change, or until now."""

    revision: int
    mode: Mode
    share: float
    before: str | None
    by: str
    reason: str
    at: datetime | None
    forecast: dict[str, Any] | None
    happened: dict[str, Any] | None


class ZooSwitch(ModeChange):
    """The mode of a zoo, its forecast as of now, that of reading answers, and its history, the
    newest first."""

    zoo: str
    is_returned: bool
    second_answers: SecondAnswers | None
    candidates: list[str]
    groups: list[str]
    history: list[ModeChange]


@dataclass(eq=False, repr=False)
class ZooDesk:
    """The desk that shows modes and changes them, one per worker."""

    database: AsyncEngine
    engines: Mapping[str, Engine]
    modes: LiveModes
    changes: ModeChanges

    def names(self) -> list[str]:
        """Return the names of the zoos."""
        return sorted(self.modes.files)

    async def show(self, zoo: str) -> ZooSwitch:
        """Show the current state of a zoo in the database.

        Raises HTTPException for an unknown zoo, SQLAlchemyError or TimeoutError.
        """
        self._known(zoo)
        async with asyncio.timeout(SHOWING_SECONDS):
            return await self._show(zoo)

    async def _show(self, zoo: str) -> ZooSwitch:
        await self.changes.look()
        row, log = self.modes.rows.get(zoo), self._log(zoo)
        history = await zoo_modes.history(self.database, zoo, SHOWN)
        now = await compare(log, None if row is None else row.at)
        async with self.database.connect() as connection:
            reads = await read_second_answers(connection, zoo)
        return ZooSwitch(
            zoo=zoo,
            is_returned=row is not None and row.is_returned,
            candidates=list(self.engines[zoo].zoo.candidates) if zoo in self.engines else [],
            groups=list(self.engines[zoo].zoo.groups) if zoo in self.engines else [],
            history=_changes(history, now.happened),
            **_now(self.modes.now[zoo], row),
            forecast=now.forecast,
            happened=now.happened,
            second_answers=reads,
        )

    async def change(self, zoo: str, wanted: Change, by: Caller) -> ZooSwitch:
        """Change a zoo, and show it. Raises the errors of ``show``, and HTTPException for a change
        that is not allowed."""
        self._known(zoo)
        now = self.modes.now[zoo]
        given = {
            name: value
            for name in ("mode", "share", "before")
            if (value := getattr(wanted, name)) is not None
        }
        new = replace(now, **given, revision=wanted.revision)
        problem = new.problem(self.engines[zoo].zoo.befores if zoo in self.engines else ())
        if problem is not None:
            raise HTTPException(422, problem)
        await self._write(zoo, new, by.key_hash or ADMINISTRATOR, wanted.reason)
        return await self.show(zoo)

    async def _write(self, zoo: str, new: ZooMode, by: str, reason: str) -> None:
        row, log = self.modes.rows.get(zoo), self._log(zoo)
        now = await compare(log, None if row is None else row.at)
        await self.changes.change(zoo, new, by, reason, now)

    def _known(self, zoo: str) -> None:
        if zoo not in self.modes.files:
            raise HTTPException(404, f"no zoo '{zoo}'; there are: {', '.join(self.names())}")

    def _log(self, zoo: str) -> ObservedLog:
        return ObservedLog(self.database, zoo, self.engines[zoo].zoo.settings.streams)


def _now(mode: ZooMode, row: ModeRow | None) -> dict[str, Any]:
    return {
        **{name: getattr(mode, name) for name in ("revision", "mode", "share", "before")},
        "by": FILE if row is None else row.by,
        "reason": "as configured" if row is None else row.reason,
        "at": None if row is None else row.at,
    }


def _changes(rows: Sequence[ModeRow], happened_now: Mapping[str, Any] | None) -> list[ModeChange]:
    """Combine each change's forecast with its outcome, which the next change holds; that of the
    newest comes from the log."""
    happened = [happened_now, *(row.happened for row in rows)]
    return [
        ModeChange(
            **_now(row.zoo_mode, row),
            forecast=None if row.forecast is None else dict(row.forecast),
            happened=None if came is None else dict(came),
        )
        for row, came in zip(rows, happened, strict=False)
    ]


def build_zoo_routes(desk: ZooDesk, counters: Counters, administrator: Check) -> APIRouter:
    """Build the routes; each is an administrator's."""
    router = APIRouter(tags=["messplus"])

    @router.get("/messplus/zoos", dependencies=[Depends(administrator)])
    async def zoos() -> list[ZooSwitch]:
        """Show every zoo: its mode, who changed it and why, and what routing would cost."""
        with refusals(counters):
            return [await desk.show(name) for name in desk.names()]

    add_one_zoo(router, "/messplus/zoos", desk, counters, administrator, administrator)
    return router


def add_one_zoo(
    router: APIRouter,
    path: str,
    desk: ZooDesk,
    counters: Counters,
    viewer: Check,
    editor: Check,
) -> None:
    """Add the routes that show a zoo to a ``viewer``, and change it for an ``editor``."""

    @router.get(f"{path}/{{zoo:path}}", dependencies=[Depends(viewer)])
    async def zoo(zoo: str) -> ZooSwitch:
        """Show one zoo, with the history of its changes."""
        with refusals(counters):
            return await desk.show(zoo)

    @router.patch(f"{path}/{{zoo:path}}")
    async def change(
        zoo: str, body: Change, asking: Annotated[Caller, Depends(editor)]
    ) -> ZooSwitch:
        """Change how far a zoo is switched on, for all workers."""
        with refusals(counters):
            return await desk.change(zoo, body, asking)
