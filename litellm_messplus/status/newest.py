"""Figures of the newest requests: length, holds and losses of conversations, and the keys behind
failures, late decisions and labels."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.conversations.rule import Hold
from litellm_messplus.core.decision import Reason
from litellm_messplus.figures.figure import Figure, Plain, part
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


# fmt: off
CONVERSATIONS: tuple[Figure[Any], ...] = (
    Figure("zoo", "Whose."),
    Figure("service_level"),
    Figure("requests", "Of the newest 2,000, those that are of a conversation."),
    Figure("conversations", "Those that began among them."),
    Figure("turns", "Of these, the mean number of requests, and the mean cost with all exploration "
           "calls. The last ones may go on: on a quiet zoo both are a little low.",
           lambda row: share(row.turns, row.conversations)),
    Figure("cost", "",
           lambda row: None if row.cost is None else share(row.cost, row.conversations)),
    Figure("switches", "Requests that another candidate served than the one before in its line."),
    Figure("holds", "Requests by [why they were held](conversations.md#when-a-request-is-held) "
           "(`tool_loop`, `state`, `warm`), or held no longer (`trouble`, `lost`, `unknown`).",
           lambda row: {hold.value: getattr(row, hold.value) for hold in Hold}),
)
"""The figures of the conversations among the newest requests of a promise."""
# fmt: on


async def read_conversations(connection: AsyncConnection) -> list[Plain]:
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
        func.count().label("requests"),
        func.sum(read.begins).label("conversations"),
        func.sum(read.is_whole).label("turns"),
        func.sum(case((read.is_whole == 1, read.cost))).label("cost"),
        func.count(case((read.served != read.served_before, 1))).label("switches"),
        *(func.count(case((read.hold == hold.value, 1))).label(hold.value) for hold in Hold),
    ).group_by(read.zoo, read.service_level)
    return [part(CONVERSATIONS, row) for row in sorted((await connection.execute(query)).all())]


# Keys.


# fmt: off
INCIDENTS: tuple[Figure[Any], ...] = (
    Figure("zoo", "Whose; `key_hash` is LiteLLM's hash of the key, `null` where no key was given."),
    Figure("key_hash"),
    Figure("requests", "Its requests among them."),
    Figure("failed", "Those whose served call failed."),
    Figure("late", "Those whose decision missed its deadline."),
    Figure("checks", "Labels of [checks](labels.md) on its served calls, and those below 0.5."),
    Figure("unsatisfied_checks"),
    Figure("held", "Its labels that are kept without counting."),
)
"""The newest requests of one key at a zoo, and what they caused."""
# fmt: on
CAUSED = tuple(each.path for each in INCIDENTS[3:])
"""The counts of a key's incidents, by kind."""


async def read_incidents(connection: AsyncConnection) -> list[Plain]:
    """Read the heaviest keys among the newest requests of all zoos."""
    names = [each.path for each in INCIDENTS]
    labelled = {tuple(row[:2]): row[2:] for row in await connection.execute(_labels())}
    return heaviest(
        dict(zip(names, (*row, *labelled.get(tuple(row[:2]), (0, 0, 0))), strict=True))
        for row in await connection.execute(_requests())
    )


def heaviest(found: Iterable[Plain], most: int = MOST) -> list[Plain]:
    """Choose the keys with the largest share of any one kind in their zoo, the largest first, so
    that a kind common to all keys does not hide one that a single key dominates."""
    keys = [each for each in found if any(each[name] for name in CAUSED)]
    totals = Counter[tuple[str, str]]()
    for each in keys:
        totals.update({(each["zoo"], name): each[name] for name in CAUSED})

    def largest(key: Plain) -> float:
        return max(float(key[name]) / max(totals[key["zoo"], name], 1) for name in CAUSED)

    ranked = sorted(keys, key=lambda key: (-largest(key), key["zoo"], key["key_hash"] or ""))
    return ranked[:most]


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
