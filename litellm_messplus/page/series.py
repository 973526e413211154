"""One promise over time, for the charts: read from the sums by hour or by day, never from the log.

The rows are looked up by day and promise along the primary keys, so a reading takes as long as the
span is wide, however many requests it had and however many promises there are.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, share, tallies
from litellm_messplus.page.span import Span
from litellm_messplus.store.sum_tables import (
    call_sums,
    grading_sums,
    hourly_call_sums,
    hourly_request_sums,
    request_sums,
)
from litellm_messplus.vocabulary import CallRole


@dataclass(slots=True)
class Called:
    """The calls of one step by candidate, and how many of them failed."""

    served: Counter[str] = field(default_factory=Counter)
    explored: Counter[str] = field(default_factory=Counter)
    failures: int = 0

    def add(self, candidate: str, role: str, calls: int, failures: int) -> None:
        """Count calls of one candidate; what nobody knows the candidate of has an empty name."""
        (self.served if role == CallRole.SERVED else self.explored)[candidate] += calls
        self.failures += failures


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a chart. Shares are from 0 to 1, costs in the zoo's unit; None is unknown.

    ``promised`` is alpha, where it changed within the step its mean. ``paid`` and
    ``paid_at_largest`` are what the savings compare, ``queue`` is the mean at the
    decisions. ``number`` is that of the newest request, where steps are of requests.
    """

    at: datetime
    requests: int
    answered: int
    failed: int
    judged: int
    promised: float | None
    rate: float | None
    low: float | None
    high: float | None
    cost: float
    paid: float
    paid_at_largest: float
    saved_share: float | None
    queue: float | None
    served: dict[str, int]
    explored: dict[str, int]
    failures: int
    number: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class LabelCost:
    """The cost of a judge's gradings on one day, in dollars; None where nobody knows."""

    at: datetime
    judge: str
    gradings: int
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "at": self.at.isoformat()}


async def read_points(connection: AsyncConnection, zoo: str, level: str, span: Span) -> list[Point]:
    """Read a point for each step of the span, those without requests too."""
    sums = await read_sums(connection, zoo, level, span)
    steps = [Called() for _ in span.starts]
    called, by = (hourly_call_sums, ("day", "hour")) if span.is_hourly else (call_sums, ("day",))
    columns = (*by, "candidate", "role", "calls", "failures")
    query = select(*(called.c[name] for name in columns)).where(_of(called, zoo, level, span))
    for row in await connection.execute(query):
        place = span.place(_moment(*row[: len(by)]))
        if place is not None:
            steps[place].add(row.candidate, row.role, row.calls, row.failures)
    return [point(*step) for step in zip(span.starts, sums, steps, strict=True)]


async def read_sums(connection: AsyncConnection, zoo: str, level: str, span: Span) -> list[Tally]:
    """Read what the requests of each step came to."""
    steps = [Tally() for _ in span.starts]
    sums, by = (
        (hourly_request_sums, ("day", "hour")) if span.is_hourly else (request_sums, ("day",))
    )
    found = await tallies(connection, *by, source=sums, where=_of(sums, zoo, level, span))
    for when, tally in found.items():
        place = span.place(_moment(*when))
        if place is not None:
            steps[place] += tally
    return steps


async def read_label_costs(connection: AsyncConnection, zoo: str, span: Span) -> list[LabelCost]:
    """Read what the judges of a zoo cost on each day of the span that had gradings."""
    of = grading_sums.c
    query = (
        select(of.day, of.judge, of.gradings, of.cost)
        .where(of.day.in_(span.days), of.zoo == zoo)
        .order_by(of.day, of.judge)
    )
    return [
        LabelCost(_moment(day), judge, gradings, cost)
        for day, judge, gradings, cost in await connection.execute(query)
    ]


def point(
    at: datetime,
    own: Tally,
    called: Called,
    judged: Tally | None = None,
    number: int | None = None,
) -> Point:
    """Compute what a step says: of its ``own`` requests, and of those that were ``judged``, where
    its rate is of others too."""
    said = own if judged is None else judged
    interval = said.interval
    return Point(
        at=at,
        requests=own.requests,
        answered=own.succeeded,
        failed=own.failed,
        judged=said.judged,
        promised=said.promised,
        rate=said.rate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cost=own.cost,
        paid=own.paid,
        paid_at_largest=own.compared_cost_largest,
        saved_share=own.saved_share,
        queue=share(own.queue, own.requests),
        served=dict(called.served),
        explored=dict(called.explored),
        failures=called.failures,
        number=number,
    )


def _of(table: Table, zoo: str, level: str, span: Span) -> ColumnElement[bool]:
    of = table.c
    return and_(of.day.in_(span.days), of.zoo == zoo, of.service_level == level)


def _moment(day: date, hour: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
