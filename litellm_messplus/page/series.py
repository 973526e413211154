"""One promise over time, for the charts: read from the sums by hour or by day, never from the log.

The rows are looked up by day and promise along the primary keys, so a reading takes as long as the
span is wide, however many requests it had and however many promises there are.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, Table, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import effective
from litellm_messplus.page.span import Span
from litellm_messplus.status.windows import interval_of, share
from litellm_messplus.store.sum_tables import (
    call_sums,
    grading_sums,
    hourly_call_sums,
    hourly_request_sums,
    request_sums,
)
from litellm_messplus.vocabulary import CallRole


@dataclass(slots=True)
class Sums:
    """The sums over the requests of one step; ``queued`` of them have their ``queue`` in the
    sum."""

    requests: int = 0
    answered: int = 0
    weight: float = 0.0
    weight_squared: float = 0.0
    weighted_satisfaction: float = 0.0
    weighted_alpha: float = 0.0
    alphas: set[float] = field(default_factory=set)
    cost: float = 0.0
    compared: int = 0
    compared_cost: float = 0.0
    compared_cost_largest: float = 0.0
    queue: float = 0.0
    queued: int = 0
    served: Counter[str] = field(default_factory=Counter)
    explored: Counter[str] = field(default_factory=Counter)
    failures: int = 0

    @property
    def promised(self) -> float | None:
        """Alpha; where it changed, its mean over the verdicts, which rounds one that did not."""
        if len(self.alphas) == 1:
            return next(iter(self.alphas))
        return self.weighted_alpha / self.weight if self.weight else None

    def add_call(self, candidate: str, role: str, calls: int, failures: int) -> None:
        """Count calls of one candidate; what nobody knows the candidate of has an empty name."""
        (self.served if role == CallRole.SERVED else self.explored)[candidate] += calls
        self.failures += failures


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a chart. Shares are from 0 to 1, costs in the zoo's unit; None is unknown.

    ``promised`` is alpha, where it changed within the step its mean. ``paid`` and
    ``paid_at_largest`` are over the requests for which both are known, ``queue`` is the mean at the
    decisions. ``number`` is that of the newest request, where steps are of requests.
    """

    at: datetime
    requests: int
    answered: int
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
    steps = [Sums() for _ in span.starts]
    promises, called = (
        (hourly_request_sums, hourly_call_sums) if span.is_hourly else (request_sums, call_sums)
    )
    for row in await connection.execute(_requests(promises, zoo, level, span)):
        _add_requests(steps, span, row)
    for row in await connection.execute(_calls(called, zoo, level, span)):
        place = span.place(_moment(row))
        if place is not None:
            steps[place].add_call(row.candidate, row.role, row.calls, row.failures)
    for row in await connection.execute(_queues(zoo, level, span)):
        place = span.place(_moment(row))
        if place is not None:
            steps[place].queue += row.queue
            steps[place].queued += row.requests
    return [point(at, sums) for at, sums in zip(span.starts, steps, strict=True)]


async def read_label_costs(connection: AsyncConnection, zoo: str, span: Span) -> list[LabelCost]:
    """Read what the judges of a zoo cost on each day of the span that had gradings."""
    of = grading_sums.c
    query = (
        select(of.day, of.judge, of.gradings, of.cost)
        .where(of.day.in_(span.days), of.zoo == zoo)
        .order_by(of.day, of.judge)
    )
    return [
        LabelCost(_midnight(day), judge, gradings, cost)
        for day, judge, gradings, cost in await connection.execute(query)
    ]


def point(at: datetime, sums: Sums, number: int | None = None) -> Point:
    """Compute what the sums of a step say."""
    rate = sums.weighted_satisfaction / sums.weight if sums.weight else None
    interval = interval_of(rate, effective(sums.weight, sums.weight_squared))
    saved = sums.compared_cost_largest - sums.compared_cost
    return Point(
        at=at,
        requests=sums.requests,
        answered=sums.answered,
        promised=sums.promised,
        rate=rate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        cost=sums.cost,
        paid=sums.compared_cost,
        paid_at_largest=sums.compared_cost_largest,
        saved_share=share(saved, sums.compared_cost_largest),
        queue=sums.queue / sums.queued if sums.queued else None,
        served=dict(sums.served),
        explored=dict(sums.explored),
        failures=sums.failures,
        number=number,
    )


def _add_requests(steps: list[Sums], span: Span, row: Row[Any]) -> None:
    place = span.place(_moment(row))
    if place is None:
        return
    sums = steps[place]
    sums.requests += row.requests
    sums.answered += row.answered
    sums.weight += row.weight
    sums.weight_squared += row.weight_squared
    sums.weighted_satisfaction += row.weighted_satisfaction
    sums.weighted_alpha += row.weight * row.alpha
    sums.alphas.add(row.alpha)
    sums.cost += row.cost
    sums.compared += row.compared
    sums.compared_cost += row.compared_cost
    sums.compared_cost_largest += row.compared_cost_largest


def _requests(table: Table, zoo: str, level: str, span: Span) -> Select[Any]:
    names = ("alpha", "requests", "answered", "weight", "weight_squared", "weighted_satisfaction")
    costs = ("cost", "compared", "compared_cost", "compared_cost_largest")
    return _of(table, (*names, *costs), zoo, level, span)


def _calls(table: Table, zoo: str, level: str, span: Span) -> Select[Any]:
    return _of(table, ("candidate", "role", "calls", "failures"), zoo, level, span)


def _queues(zoo: str, level: str, span: Span) -> Select[Any]:
    """Read the queues: they are kept by hour alone, so days are added up by the database."""
    if span.is_hourly:
        return _of(hourly_request_sums, ("queue", "requests"), zoo, level, span)
    of = hourly_request_sums.c
    return (
        select(
            of.day,
            literal(0).label("hour"),
            func.sum(of.queue).label("queue"),
            func.sum(of.requests).label("requests"),
        )
        .where(of.day.in_(span.days), of.zoo == zoo, of.service_level == level)
        .group_by(of.day)
    )


def _of(table: Table, names: Iterable[str], zoo: str, level: str, span: Span) -> Select[Any]:
    of = table.c
    hour = of.hour if "hour" in of else literal(0).label("hour")
    return select(of.day, hour, *(of[name] for name in names)).where(
        of.day.in_(span.days), of.zoo == zoo, of.service_level == level
    )


def _moment(row: Row[Any]) -> datetime:
    return _midnight(row.day) + timedelta(hours=row.hour)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
