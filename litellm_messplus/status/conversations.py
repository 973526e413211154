"""What became of conversations: how long they are, what holds them, and where they were lost."""

from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.conversations.rule import KEPT, Hold
from litellm_messplus.status.reading import window_start, within
from litellm_messplus.store.tables import outcomes, requests

NEWEST = 2_000
"""Requests of each service level that are read: the status takes the same time on any log."""


@dataclass(frozen=True, slots=True)
class ConversationStatus:
    """The conversations of one promise, by its newest requests, of which so many are ``requests``
    of a conversation.

    ``conversations`` are those that began among them, ``turns`` and ``cost`` the means of these;
    None without any, or where no cost is known. ``switches`` are requests that another candidate
    served than the one before in its line, and ``holds`` counts the requests by why they were held,
    or held no longer.
    """

    zoo: str
    service_level: str
    requests: int
    conversations: int
    turns: float | None
    cost: float | None
    switches: int
    holds: dict[str, int]

    @property
    def held_share(self) -> float:
        """The share of the requests that stayed where they were answered before."""
        return sum(self.holds[reason] for reason in KEPT) / self.requests


async def read_conversations(connection: AsyncConnection) -> tuple[ConversationStatus, ...]:
    """Read the newest requests of every service level, as far as they are of conversations."""
    asked, found = requests.c, outcomes.c
    begins = case((asked.conversation == asked.request_id, 1), else_=0)
    turns = within(
        select(
            asked.zoo,
            asked.service_level,
            asked.hold,
            case((found.served_cost.is_not(None), found.cost)).label("cost"),
            found.served,
            begins.label("begins"),
            func.max(begins).over(partition_by=asked.conversation).label("is_whole"),
            func.lag(found.served)
            .over(partition_by=asked.line, order_by=(asked.turn, asked.position))
            .label("served_before"),
        )
        .select_from(outcomes)
        .join(requests, asked.request_id == found.request_id)
        .where(asked.conversation.is_not(None)),
        found.request_id,
        await window_start(connection, NEWEST),
    ).subquery()
    read = turns.c
    query = select(
        read.zoo,
        read.service_level,
        func.count(),
        func.sum(read.begins),
        func.sum(read.is_whole),
        func.sum(case((read.is_whole == 1, read.cost))),
        func.count(case((read.served != read.served_before, 1))),
        *(func.count(case((read.hold == hold.value, 1))) for hold in Hold),
    ).group_by(read.zoo, read.service_level)
    return tuple(_status(*row) for row in sorted((await connection.execute(query)).all()))


def _status(
    zoo: str,
    level: str,
    count: int,
    conversations: int,
    turns: int,
    cost: float | None,
    switches: int,
    *holds: int,
) -> ConversationStatus:
    return ConversationStatus(
        zoo,
        level,
        count,
        conversations,
        turns / conversations if conversations else None,
        cost / conversations if conversations and cost is not None else None,
        switches,
        dict(zip((hold.value for hold in Hold), holds, strict=True)),
    )
