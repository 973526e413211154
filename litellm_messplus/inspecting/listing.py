"""The newest requests, with what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, column, or_, select, table, true
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.errors import MessplusError
from litellm_messplus.store.reading import reading
from litellm_messplus.store.sum_tables import outcomes
from litellm_messplus.store.tables import requests

MOST = 1000
PAGE = 500
HALF = 0.5
"""A verdict below it counts as unsatisfied in a list; the promise counts verdicts as they are."""
CALLED = table("calls_per_model", column("candidate"), column("zoo"))


def of_key(given: str) -> ColumnElement[bool]:
    """Return the condition of a request by a key, known by its alias or how its hash begins."""
    asked = requests.c
    return or_(asked.key_alias == given, asked.key_hash.startswith(given, autoescape=True))


class NotAllowedError(MessplusError):
    """A refusal of what was asked for; the message says what is allowed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One request; ``satisfied`` is the value of the verdict, None without one."""

    request_id: str
    created_at: datetime
    zoo: str
    service_level: str
    chosen: str
    served: str | None
    satisfied: float | None
    cost: float | None
    reason: str

    def as_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "created_at": self.created_at.isoformat()}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requests to list: the newest ``last`` of a zoo, that a model was chosen for or served,
    of a key (its alias, or how its hash begins), and that did not satisfy. None is any."""

    last: int = 20
    zoo: str | None = None
    model: str | None = None
    is_unsatisfied: bool = False
    key: str | None = None

    def asked(self) -> list[ColumnElement[bool]]:
        """Return what a query asks of the requests themselves."""
        of = requests.c
        return [
            *([] if self.zoo is None else [of.zoo == self.zoo]),
            *([] if self.key is None else [of_key(self.key)]),
        ]

    def takes(self, found: Listed) -> bool:
        is_of_model = self.model in (None, found.chosen, found.served)
        is_unsatisfied = found.satisfied is not None and found.satisfied < HALF
        return is_of_model and (is_unsatisfied or not self.is_unsatisfied)


async def requests_in(database: str, wanted: Wanted) -> list[Listed]:
    """Read them from a database, the newest first.

    Raises NotAllowedError for a zoo or model that the log does not have and for ``last`` out of
    bounds, and UnreadableDatabaseError.
    """
    if not 1 <= wanted.last <= MOST:
        raise NotAllowedError(f"--last: given {wanted.last}; allowed: 1 to {MOST}")
    async with reading(database) as engine:
        found = await _newest(engine, wanted)
        if not found:
            await _check_names(engine, wanted)
        return found


async def _newest(engine: AsyncEngine, wanted: Wanted) -> list[Listed]:
    """Walk backwards in pages until there are enough."""
    found: list[Listed] = []
    before: int | None = None
    async with engine.connect() as connection:
        while len(found) < wanted.last:
            page = await _page(connection, wanted, before)
            if not page:
                break
            before = page[-1].position
            listed = [Listed(*row[1:]) for row in page]
            found += [each for each in listed if wanted.takes(each)]
    return found[: wanted.last]


async def _page(connection: AsyncConnection, wanted: Wanted, before: int | None) -> Sequence[Any]:
    is_before: ColumnElement[bool] = true() if before is None else requests.c.position < before
    own, found = requests.c, outcomes.c
    query = (
        select(
            *(own.position, own.request_id, own.created_at, own.zoo, own.service_level, own.chosen),
            *(found.served, found.satisfaction, found.cost, own.reason),
        )
        .join(outcomes, found.request_id == own.request_id)
        .where(is_before, *wanted.asked())
        .order_by(requests.c.position.desc())
        .limit(PAGE)
    )
    return (await connection.execute(query)).all()


async def _check_names(engine: AsyncEngine, wanted: Wanted) -> None:
    """Say which names there are, where nothing was found under one that is not there."""
    async with engine.connect() as connection:

        async def names(of: ColumnElement[Any]) -> set[str]:
            found = (await connection.execute(select(of).distinct())).scalars()
            return {name for name in found if name is not None}

        zoos = await names(requests.c.zoo)
        models = await names(requests.c.chosen) | await names(CALLED.c.candidate)
    for option, given, known in (("--zoo", wanted.zoo, zoos), ("--model", wanted.model, models)):
        if given is not None and known and given not in known:
            raise NotAllowedError(f"{option}: given {given!r}; allowed: {', '.join(sorted(known))}")
