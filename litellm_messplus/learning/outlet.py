"""How a published state comes from the learner to the workers: on SQLite by a file, replaced as a
whole, on Postgres by a row.

Every publication is a sign of life, and between two the learner gives one each second. The age of a
state is measured on the reader's own clock, from the last sign that it saw: machines need not agree
on the time.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning.lease import adjacent_path
from litellm_messplus.store.tables import learner

SUFFIX = "-state"
"""The end of the name of the file, after that of the database's."""


class _Signs:
    """The signs of life that a reader has seen."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: object = None
        self._at = clock()

    def _is_new(self, sign: object) -> bool:
        """Note a sign; return whether it differs from the last one."""
        if sign == self._last:
            return False
        self._last, self._at = sign, self._clock()
        return True

    @property
    def silent_seconds(self) -> float:
        return self._clock() - self._at


class FileOutlet(_Signs):
    """A file next to a SQLite database. A reader sees the old one or the new one, never a part."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._path = path

    async def publish(self, data: bytes, epoch: int) -> None:
        part = self._path.with_name(self._path.name + ".part")
        part.write_bytes(data)
        os.replace(part, self._path)

    async def sign(self, epoch: int) -> bool:
        try:
            os.utime(self._path)
        except FileNotFoundError:
            return False
        return True

    async def newer(self) -> bytes | None:
        with suppress(FileNotFoundError):
            found = os.stat(self._path)
            if self._is_new((found.st_ino, found.st_mtime_ns, found.st_size)):
                return self._path.read_bytes()
        return None


class RowOutlet(_Signs):
    """A row of the table `learner`. Only the learner in office changes it."""

    def __init__(self, database: AsyncEngine, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._database = database

    async def publish(self, data: bytes, epoch: int) -> None:
        await self._change(epoch, state=data)

    async def sign(self, epoch: int) -> bool:
        await self._change(epoch)
        return True

    async def _change(self, epoch: int, **state: bytes) -> None:
        values = {"published_at": datetime.now(UTC), **state}
        mine = learner.c.epoch == epoch
        async with self._database.begin() as connection:
            await connection.execute(update(learner).where(mine).values(values))

    async def newer(self) -> bytes | None:
        async with self._database.connect() as connection:
            sign = await connection.execute(select(learner.c.epoch, learner.c.published_at))
            if not self._is_new(tuple(sign.one())):
                return None
            state: bytes | None = (await connection.execute(select(learner.c.state))).scalar_one()
            return state


Outlet = FileOutlet | RowOutlet
"""The place of the newest publication."""


def outlet_of(database: AsyncEngine) -> Outlet:
    """Return the outlet of a database."""
    if database.dialect.name == "postgresql":
        return RowOutlet(database)
    return FileOutlet(adjacent_path(database, SUFFIX))
