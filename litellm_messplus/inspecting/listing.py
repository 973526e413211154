"""The newest requests that pass filters, with their outcomes: for the command, and for the page a
bounded way back at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, or_, select, table
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.inspecting.explain import reason_in_words
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.vocabulary import level_before
from litellm_messplus.store.reading import reading
from litellm_messplus.store.tables import log_head, outcomes, requests

MOST = 1000
"""Most requests that the command lists."""
SHOWN = 25
"""Requests in one answer of the page."""
LOOK_BACK = 10_000
"""Positions of the log that one answer searches: then it states where to go on, so a filter that
nothing passes takes no longer than one that everything does."""
HALF = 0.5
"""A verdict below it counts as unsatisfied in a list; the promise counts verdicts as they are."""
CALLED = table("calls_per_model", column("candidate"), column("zoo"))
OF_REQUEST = (
    *("request_id", "position", "created_at", "zoo", "service_level", "chosen", "key_hash"),
    *("key_alias", "arm", "is_exploration", "reason"),
)
OF_OUTCOME = ("served", "status", "failure", "satisfaction", "cost")
OF_COMMAND = (
    *("request_id", "created_at", "zoo", "service_level", "chosen", "served", "status", "failure"),
    *("cost", "reason"),
)


class Given(StrEnum):
    """The verdicts of users, checks or a judge; ``FAILED`` where there is no answer to judge."""

    SATISFIED = "satisfied"
    UNSATISFIED = "unsatisfied"
    NONE = "none"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter of requests: of a zoo, of a promise (also as before), with a ``model`` that was
    chosen or served, of a ``key`` (its alias, or the beginning of its hash), from before a
    position. None is any."""

    zoo: str | None = None
    service_level: str | None = None
    model: str | None = None
    verdict: Given | None = None
    key: str | None = None
    is_exploration: bool | None = None
    before: int | None = None

    def query(self) -> Select[Any]:
        """Build the query of the requests, the newest first."""
        request, found = requests.c, outcomes.c
        return (
            select(*(request[name] for name in OF_REQUEST), *(found[name] for name in OF_OUTCOME))
            .join(outcomes, found.request_id == request.request_id)
            .where(*self._conditions())
            .order_by(request.position.desc())
        )

    def _conditions(self) -> Iterator[ColumnElement[bool]]:
        request, found = requests.c, outcomes.c
        if self.zoo is not None:
            yield request.zoo == self.zoo
        if self.service_level is not None:
            yield request.service_level.in_((self.service_level, level_before(self.service_level)))
        if self.model is not None:
            yield or_(request.chosen == self.model, found.served == self.model)
        if self.key is not None:
            is_hash = request.key_hash.startswith(self.key, autoescape=True)
            yield or_(request.key_alias == self.key, is_hash)
        if self.is_exploration is not None:
            yield request.is_exploration == self.is_exploration
        if self.before is not None:
            yield request.position < self.before
        match self.verdict:
            case Given.SATISFIED:
                yield found.satisfaction >= HALF
            case Given.UNSATISFIED:
                yield found.satisfaction < HALF
            case Given.NONE:
                yield found.satisfaction.is_(None)
            case Given.FAILED:
                yield found.failure.is_not(None)


# For the command.


class NotAllowedError(MessplusError):
    """A refusal of the given arguments; the message states what is allowed."""


async def requests_in(database: str, wanted: Wanted, last: int = 20) -> list[dict[str, Any]]:
    """Read the newest ``last`` matching requests from a database, the newest first: `satisfied` is
    the value of the verdict, None without one; `failure` who failed, None if nobody did; `status`
    is None until it ends.

    Raises NotAllowedError for a zoo or model that is not in the log and for ``last`` out of bounds,
    and UnreadableDatabaseError.
    """
    if not 1 <= last <= MOST:
        raise NotAllowedError(f"--last: given {last}; allowed: 1 to {MOST}")
    async with reading(database) as engine:
        async with engine.connect() as connection:
            rows = (await connection.execute(wanted.query().limit(last))).all()
        if not rows:
            await _check_names(engine, wanted)
    found = ({name: getattr(row, name) for name in OF_COMMAND} for row in rows)
    return [
        each | {"created_at": row.created_at.isoformat(), "satisfied": row.satisfaction}
        for each, row in zip(found, rows, strict=True)
    ]


async def _check_names(engine: AsyncEngine, wanted: Wanted) -> None:
    """Refuse a zoo or model that is not in the log, naming those that are."""
    async with engine.connect() as connection:

        async def names(of: ColumnElement[Any]) -> set[str]:
            found = (await connection.execute(select(of).distinct())).scalars()
            return {name for name in found if name is not None}

        zoos = await names(requests.c.zoo)
        models = await names(requests.c.chosen) | await names(CALLED.c.candidate)
    for option, given, known in (("--zoo", wanted.zoo, zoos), ("--model", wanted.model, models)):
        if given is not None and known and given not in known:
            raise NotAllowedError(f"{option}: given {given!r}; allowed: {', '.join(sorted(known))}")


# For the page.


async def list_requests(connection: AsyncConnection, wanted: Wanted) -> dict[str, Any]:
    """List at most ``SHOWN`` requests as the page shows them, within ``LOOK_BACK`` positions before
    ``wanted.before``; the `before` of the answer is where to go on, None at the log's start."""
    end = wanted.before
    if end is None:
        end = 1 + (await connection.execute(select(func.max(log_head.c.position)))).scalar_one()
    begin = max(0, end - LOOK_BACK)
    query = wanted.query().where(requests.c.position < end, requests.c.position >= begin)
    rows = (await connection.execute(query.limit(SHOWN))).all()
    reached = rows[-1].position if len(rows) == SHOWN else begin
    before = reached if reached > 1 else None
    return {"requests": [_shown(row) for row in rows], "before": before}


def _shown(row: Any) -> dict[str, Any]:
    found = {
        **row._mapping,
        "created_at": row.created_at.isoformat(),
        "reason": reason_in_words(row.reason),
    }
    del found["position"]
    return found
