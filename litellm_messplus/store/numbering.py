"""The numbers of requests within their service levels: given at the commit, in the log's order."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.rows import Row
from litellm_messplus.store.tables import requests

Level = tuple[str, str]
"""Zoo and service level."""


class Numbering:
    """What a writer knows of the highest numbers, so that it asks for them only where others have
    written since: asked with every commit, they cost half a millisecond of it."""

    def __init__(self) -> None:
        self._position: int | None = None
        self._highest: dict[Level, int] = {}

    async def number(
        self,
        connection: AsyncConnection,
        decided: Sequence[Row],
        before: int,
        *,
        is_pruned: bool = False,
    ) -> dict[Level, int]:
        """Number the rows; returns the highest numbers with them. The caller holds the head of the
        log, which was at ``before``: nobody else numbers meanwhile. Where the log ``is_pruned`` and
        has no request of a level left, its numbers go on from the one that was expected."""
        highest = dict(self._highest) if before == self._position else {}
        for row in decided:
            level = row["zoo"], row["service_level"]
            if level not in highest:
                known = await _highest_t(connection, *level)
                highest[level] = row["expected_t"] - 1 if is_pruned and known == 0 else known
            row["t"] = highest[level] = highest[level] + 1
        return highest

    def committed(self, position: int, highest: dict[Level, int]) -> None:
        """Remember what holds where the log ends at that position."""
        self._position, self._highest = position, highest

    def forget(self) -> None:
        """Ask again: a commit failed, perhaps by a number that was taken."""
        self._position = None


async def _highest_t(connection: AsyncConnection, zoo: str, service_level: str) -> int:
    """The last entry of an index: no counter beside the rows could come to say another."""
    query = select(func.max(requests.c.t)).where(
        requests.c.zoo == zoo, requests.c.service_level == service_level
    )
    return (await connection.execute(query)).scalar_one() or 0
