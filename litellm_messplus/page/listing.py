"""A list of requests by what a person looks for, the newest first, a bounded way back at a time."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.inspecting.listing import of_key
from litellm_messplus.inspecting.render import reason_in_words
from litellm_messplus.store.history import KEPT
from litellm_messplus.store.sum_tables import outcomes
from litellm_messplus.store.tables import log_head, requests
from litellm_messplus.vocabulary import level_before

SHOWN = 25
"""Requests in one answer."""
LOOK_BACK = 10_000
"""Positions of the log that one answer looks through: then it says where to go on, so a filter that
nothing passes takes no longer than one that everything does."""
HALF = 0.5
"""A verdict below it counts as unsatisfied in a list; the promise counts verdicts as they are."""
LISTED = (
    *("request_id", "position", "created_at", "zoo", "service_level", "chosen", "key_hash"),
    *("key_alias", "arm", "is_exploration", "reason"),
)


class Given(StrEnum):
    """The verdicts of users, checks or a judge."""

    SATISFIED = "satisfied"
    UNSATISFIED = "unsatisfied"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requests of a promise that are asked for, also as before; None is any. ``key`` is its
    alias, or how its hash begins."""

    zoo: str
    service_level: str
    model: str | None = None
    verdict: Given | None = None
    key: str | None = None
    is_exploration: bool | None = None
    before: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return them as a query asks them."""
        asked, found = requests.c, outcomes.c
        return [
            asked.zoo == self.zoo,
            asked.service_level.in_((self.service_level, level_before(self.service_level))),
            *([] if self.key is None else [of_key(self.key)]),
            *([] if self.is_exploration is None else [asked.is_exploration == self.is_exploration]),
            *(
                []
                if self.model is None
                else [or_(asked.chosen == self.model, found.served == self.model)]
            ),
            *self._of_verdict(),
        ]

    def _of_verdict(self) -> list[ColumnElement[bool]]:
        satisfaction = outcomes.c.satisfaction
        match self.verdict:
            case Given.SATISFIED:
                return [satisfaction >= HALF]
            case Given.UNSATISFIED:
                return [satisfaction < HALF]
            case Given.NONE:
                return [satisfaction.is_(None)]
            case _:
                return []


@dataclass(frozen=True, slots=True)
class Listing:
    """Requests as the page shows them; ``before`` is where to go on, None at the log's start."""

    requests: list[dict[str, Any]]
    before: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"requests": self.requests, "before": self.before}


async def list_requests(connection: AsyncConnection, wanted: Wanted) -> Listing:
    """List at most ``SHOWN`` of them, within ``LOOK_BACK`` positions before ``wanted.before``."""
    end = wanted.before
    if end is None:
        end = 1 + (await connection.execute(select(func.max(log_head.c.position)))).scalar_one()
    begin = max(0, end - LOOK_BACK)
    query = (
        select(
            *(requests.c[name] for name in LISTED),
            outcomes.c.served,
            outcomes.c.status,
            outcomes.c.satisfaction,
            outcomes.c.cost,
        )
        .join(outcomes, outcomes.c.request_id == requests.c.request_id)
        .where(requests.c.position < end, requests.c.position >= begin, KEPT, *wanted.conditions())
        .order_by(requests.c.position.desc())
        .limit(SHOWN)
    )
    rows = (await connection.execute(query)).all()
    reached = rows[-1].position if len(rows) == SHOWN else begin
    return Listing([_shown(row) for row in rows], reached if reached > 1 else None)


def _shown(row: Any) -> dict[str, Any]:
    found = {
        **row._mapping,
        "created_at": row.created_at.isoformat(),
        "reason": reason_in_words(row.reason),
    }
    del found["position"]
    return found
