"""The modes of zoos in the database: appended by compare-and-set, the newest row is in force."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.rows import UNBOUNDED, column, flat, rebuilt, record
from litellm_messplus.store.rows import table_of
from litellm_messplus.switching.modes import Mode, ZooMode

KEPT = 1000
"""The number of newest changes of a zoo that are kept."""
FILE = "file"
"""The author of a change made by the configuration file."""
WAY_BACK = "way back"
"""The author of a change by which the zoo returned by itself to what served before."""


@record
class ModeRow:
    """One change of a zoo's mode."""

    zoo: str = column("The zoo.")
    revision: int = column("Number of the change, from 1.")
    mode: str = column("`watch`, `canary` or `on`.", size=16)
    share: float = column("The share of conversations routed under `canary`.")
    before: str | None = column(
        "What serves the others: `litellm`, a candidate, or `group:` and a member; NULL where "
        "there is no way back."
    )
    by: str = column("Who changed it: the hash of a key, `file`, or `way back`.")
    reason: str = column("Why.", size=UNBOUNDED)
    at: datetime = column("When, UTC.")
    file_fingerprint: str = column(
        "Fingerprint of the value in the configuration file then: another value there is a change.",
        size=64,
    )
    forecast: Mapping[str, Any] | None = column("Forecast of routing at that time.", default=None)
    happened: Mapping[str, Any] | None = column(
        "The outcome of the requests routed under the previous revision.", default=None
    )

    @property
    def zoo_mode(self) -> ZooMode:
        """The mode in force from then on."""
        return ZooMode(Mode(self.mode), self.share, self.before, self.revision)

    @property
    def is_returned(self) -> bool:
        """Whether the zoo returned by itself, and was not resumed."""
        return self.by == WAY_BACK


zoo_modes = table_of(
    ModeRow,
    "zoo_modes",
    "How far the router has taken over each zoo, one row per change; the newest holds. A zoo "
    "without a row is in the mode of the configuration file.",
    keys=2,
)


async def newest(database: AsyncEngine) -> dict[str, ModeRow]:
    """Read the newest row of every zoo that has one."""
    async with database.connect() as connection:
        return await newest_of(connection)


async def newest_of(connection: AsyncConnection) -> dict[str, ModeRow]:
    """Read the same on an open connection."""
    last = (
        select(zoo_modes.c.zoo, func.max(zoo_modes.c.revision).label("revision"))
        .group_by(zoo_modes.c.zoo)
        .subquery("last")
    )
    is_last = (zoo_modes.c.zoo == last.c.zoo) & (zoo_modes.c.revision == last.c.revision)
    found = await connection.execute(select(zoo_modes).join(last, is_last))
    return {row.zoo: rebuilt(ModeRow, row._mapping) for row in found}


async def history(database: AsyncEngine, zoo: str, count: int) -> Sequence[ModeRow]:
    """Read the newest changes of a zoo, the last one first."""
    query: Select[Any] = (
        select(zoo_modes)
        .where(zoo_modes.c.zoo == zoo)
        .order_by(zoo_modes.c.revision.desc())
        .limit(count)
    )
    async with database.connect() as connection:
        return [rebuilt(ModeRow, row._mapping) for row in await connection.execute(query)]


async def append(database: AsyncEngine, row: ModeRow) -> bool:
    """Append a change; False if another process has written that revision already.

    Raises sqlalchemy.exc.SQLAlchemyError if the database refuses.
    """
    try:
        async with database.begin() as connection:
            await connection.execute(insert(zoo_modes).values(flat(row)))
            old = zoo_modes.c.revision <= row.revision - KEPT
            await connection.execute(delete(zoo_modes).where(zoo_modes.c.zoo == row.zoo, old))
    except IntegrityError:
        return False
    return True
