"""Figures of the newest requests: length, holds and losses of conversations, and the keys behind
failures, late decisions and labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.hold import Hold
from litellm_messplus.figures.tally import share
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, LabelKind
from litellm_messplus.status.reading import window_start, within
from litellm_messplus.store.tables import calls, labels, outcomes, requests, served_call

OF_EACH_LEVEL, OF_ALL = 2_000, 5_000
"""Most requests read: of each service level for conversations, of all zoos for keys; the status
takes the same time on any log."""
MOST = 10
"""Most keys that are shown."""
SATISFIED = 0.5


# Conversations.


@dataclass(frozen=True, slots=True)
class ConversationStatus:
    """The conversations among the newest requests of one promise; ``requests`` counts those of a
    conversation.

    ``conversations`` counts those that began among them, ``turns`` and ``cost`` are the means of
    these; None without any, or if no cost is known. ``switches`` counts requests served by another
    candidate than the one before in their line, ``holds`` requests by why they were held, or no
    longer held.
    """

    zoo: str
    service_level: str
    requests: int
    conversations: int
    turns: float | None
    cost: float | None
    switches: int
    holds: dict[str, int]


async def read_conversations(connection: AsyncConnection) -> tuple[ConversationStatus, ...]:
    """Read the conversations among the newest requests of every service level."""
    request, found = requests.c, outcomes.c
    begins = case((request.conversation == request.request_id, 1), else_=0)
    turns = within(
        select(
            request.zoo,
            request.service_level,
            request.hold,
            case((found.served_cost.is_not(None), found.cost)).label("cost"),
            found.served,
            begins.label("begins"),
            func.max(begins).over(partition_by=request.conversation).label("is_whole"),
            func.lag(found.served)
            .over(partition_by=request.line, order_by=(request.turn, request.position))
            .label("served_before"),
        )
        .select_from(outcomes)
        .join(requests, request.request_id == found.request_id)
        .where(request.conversation.is_not(None)),
        found.request_id,
        await window_start(connection, OF_EACH_LEVEL),
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


def _status(*row: Any) -> ConversationStatus:
    zoo, level, count, begun, turns, cost, switches, *holds = row
    means = share(turns, begun), None if cost is None else share(cost, begun)
    by_hold = dict(zip((hold.value for hold in Hold), holds, strict=True))
    return ConversationStatus(zoo, level, count, begun, *means, switches, by_hold)


# Keys.


@dataclass(frozen=True, slots=True)
class KeyIncidents:
    """The newest requests of one key at a zoo, and what they caused.

    ``key_hash`` is None if no key was given. Of the ``requests``, ``failed`` failed and ``late``
    had a late decision. ``checks`` counts labels of checks on their served calls,
    ``unsatisfied_checks`` the unsatisfied ones; ``held`` labels are kept without counting.
    """

    zoo: str
    key_hash: str | None
    requests: int
    failed: int
    late: int
    checks: int
    unsatisfied_checks: int
    held: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of its incidents, by kind."""
        return self.failed, self.late, self.checks, self.unsatisfied_checks, self.held


async def read_incidents(connection: AsyncConnection) -> tuple[KeyIncidents, ...]:
    """Read the heaviest keys among the newest requests of all zoos."""
    labelled = {tuple(row[:2]): row[2:] for row in await connection.execute(_labels())}
    found = [
        KeyIncidents(*row, *labelled.get(tuple(row[:2]), (0, 0, 0)))
        for row in await connection.execute(_requests())
    ]
    return heaviest(found)


def heaviest(found: Iterable[KeyIncidents], most: int = MOST) -> tuple[KeyIncidents, ...]:
    """Choose the keys with the largest share of any one kind in their zoo, the largest first, so
    that a kind common to all keys does not hide one that a single key dominates."""
    keys = [each for each in found if any(each.counts)]
    totals = {
        zoo: [*map(sum, zip(*(each.counts for each in keys if each.zoo == zoo), strict=True))]
        for zoo in {each.zoo for each in keys}
    }

    def largest(key: KeyIncidents) -> float:
        of_all = zip(key.counts, totals[key.zoo], strict=True)
        return max(count / max(total, 1) for count, total in of_all)

    ranked = sorted(keys, key=lambda key: (-largest(key), key.zoo, key.key_hash or ""))
    return tuple(ranked[:most])


def _newest() -> Select[Any]:
    own = requests.c
    return (
        select(own.request_id, own.zoo, own.key_hash, own.reason)
        .order_by(own.position.desc())
        .limit(OF_ALL)
    )


def _requests() -> Select[Any]:
    newest = _newest().subquery()
    served = (calls.c.request_id == newest.c.request_id) & (calls.c.role == CallRole.SERVED)
    return (
        select(
            newest.c.zoo,
            newest.c.key_hash,
            func.count(),
            func.count(case((calls.c.status == CallStatus.FAILURE, 1))),
            func.count(case((newest.c.reason == Reason.DEADLINE_MISSED, 1))),
        )
        .select_from(newest)
        .outerjoin(calls, served)
        .group_by(newest.c.zoo, newest.c.key_hash)
    )


def _labels() -> Select[Any]:
    newest = _newest().subquery()
    is_check = labels.c.kind == LabelKind.CHECK
    is_held = (labels.c.kind != LabelKind.JUDGE) & (labels.c.weight <= 0.0)
    return (
        select(
            newest.c.zoo,
            newest.c.key_hash,
            func.count(case((is_check, 1))),
            func.count(case((is_check & (labels.c.value < SATISFIED), 1))),
            func.count(case((is_held, 1))),
        )
        .select_from(newest)
        .join(labels, labels.c.request_id == newest.c.request_id)
        .where(is_held | is_check, labels.c.call_id == served_call(labels))
        .group_by(newest.c.zoo, newest.c.key_hash)
    )
