"""One promise over time, for the charts: the outcomes of its requests, and how they were served.

A range of days is read from the sums by hour or by day, never from the log: by day and promise
along the primary keys, so the time of a reading grows with the span, not with the number of
requests or promises. Right after a start days show nothing: then the newest requests are read, a
bounded number along an index.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, share, taken, tallies
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, level_before
from litellm_messplus.store.hours import CALLS, REQUESTS
from litellm_messplus.store.tables import JUDGING, calls, outcomes, requests


def plain(found: Any) -> dict[str, Any]:
    """Convert a part of a chart for JSON."""
    return asdict(
        found,
        dict_factory=lambda items: {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in items
        },
    )


# The span of time of a chart: its ends and its steps.

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONGEST_DAYS = 366
"""Most days of a span, so that a reading is bounded."""
STEPS = ((2, HOUR), (14, 6 * HOUR), (120, DAY), (LONGEST_DAYS, 7 * DAY))
"""The step for up to so many days: 24 to 120 points, as many as a person can tell apart."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time from ``begin`` to before ``end``, both UTC, in whole steps."""

    begin: datetime
    end: datetime
    step: timedelta

    @property
    def is_hourly(self) -> bool:
        """Whether a step is less than a day, so that the sums by day are too coarse."""
        return self.step < DAY

    @property
    def starts(self) -> list[datetime]:
        """The beginning of each step."""
        count = (self.end - self.begin) // self.step
        return [self.begin + place * self.step for place in range(count)]

    @property
    def days(self) -> list[date]:
        """Every date that it touches."""
        count = -(-(self.end - datetime.combine(self.begin.date(), time.min, UTC)) // DAY)
        return [self.begin.date() + place * DAY for place in range(count)]

    def place(self, moment: datetime) -> int | None:
        """Return the index of the step that contains it, from 0; None outside of the span."""
        if not self.begin <= moment < self.end:
            return None
        return (moment - self.begin) // self.step


def span_of(days: int, until: datetime) -> Span:
    """Return the span of ``days`` that ends with the step in which ``until`` lies.

    Raises ValueError for less than one day, and for more than ``LONGEST_DAYS``.
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise ValueError(f"a span of {days} days; allowed: 1 to {LONGEST_DAYS}")
    step = next(step for most, step in STEPS if days <= most)
    grain = min(step, DAY)
    midnight = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + ((until - midnight) // grain + 1) * grain
    count = -(-timedelta(days=days) // step)
    return Span(end - count * step, end, step)


# The outcomes of the requests of each step.


@dataclass(slots=True)
class Called:
    """The calls of one step by candidate, and how many of them failed."""

    served: Counter[str] = field(default_factory=Counter)
    explored: Counter[str] = field(default_factory=Counter)
    failures: int = 0

    def add(self, candidate: str, role: str, calls: int, failures: int) -> None:
        """Count calls of one candidate; the name of an unknown candidate is empty."""
        (self.served if role == CallRole.SERVED else self.explored)[candidate] += calls
        self.failures += failures


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a chart. Shares are from 0 to 1, costs in the zoo's unit; None is unknown.

    ``promised`` is alpha, its mean if it changed within the step. ``paid`` and ``paid_at_largest``
    are what the savings compare, ``queue`` is the mean at the decisions. ``number`` is that of the
    newest request, if steps are of requests.
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


@dataclass(frozen=True, slots=True)
class LabelCost:
    """The cost of a judge's gradings of one day's requests, in dollars; None if unknown."""

    at: datetime
    judge: str
    gradings: int
    cost: float | None


async def read_points(connection: AsyncConnection, zoo: str, level: str, span: Span) -> list[Point]:
    """Read a point for each step of the span, including those without requests."""
    sums = await read_sums(connection, zoo, level, span)
    steps = [Called() for _ in span.starts]
    by = ("day", "hour") if span.is_hourly else ("day",)
    columns = (*by, "candidate", "role", "calls", "failures")
    is_theirs = _of(CALLS, zoo, level, span) & (CALLS.c.role != JUDGING)
    query = select(*(CALLS.c[name] for name in columns)).where(is_theirs)
    for row in await connection.execute(query):
        place = span.place(_moment(*row[: len(by)]))
        if place is not None:
            steps[place].add(row.candidate, row.role, row.calls, row.failures)
    return [point(*step) for step in zip(span.starts, sums, steps, strict=True)]


async def read_sums(connection: AsyncConnection, zoo: str, level: str, span: Span) -> list[Tally]:
    """Read the sums of the requests of each step."""
    steps = [Tally() for _ in span.starts]
    by = ("day", "hour") if span.is_hourly else ("day",)
    where = _of(REQUESTS, zoo, level, span)
    found = await tallies(connection, *by, source=REQUESTS, where=where)
    for when, tally in found.items():
        place = span.place(_moment(*when))
        if place is not None:
            steps[place] += tally
    return steps


async def read_label_costs(connection: AsyncConnection, zoo: str, span: Span) -> list[LabelCost]:
    """Read the cost of a zoo's judges on each day of the span with gradings."""
    of = CALLS.c
    sums = func.sum(of.calls), func.sum(of.calls_without_cost), func.sum(of.cost)
    query = (
        select(of.day, of.model, *sums)
        .where(of.day.in_(span.days), of.zoo == zoo, of.role == JUDGING)
        .group_by(of.day, of.model)
        .order_by(of.day, of.model)
    )
    return [
        LabelCost(_moment(day), judge, gradings, cost if gradings > unknown else None)
        for day, judge, gradings, unknown, cost in await connection.execute(query)
    ]


def point(
    at: datetime,
    own: Tally,
    called: Called,
    judged: Tally | None = None,
    number: int | None = None,
) -> Point:
    """Compute a point from its ``own`` requests, and from those that were ``judged`` if its rate
    includes others too."""
    rated = own if judged is None else judged
    names = ("judged", "promised", "rate", "low", "high")
    return taken(
        Point,
        own,
        **{name: getattr(rated, name) for name in names},
        at=at,
        answered=own.succeeded,
        paid_at_largest=own.compared_cost_largest,
        queue=share(own.queue, own.requests),
        served=dict(called.served),
        explored=dict(called.explored),
        failures=called.failures,
        number=number,
    )


def _of(sums: FromClause, zoo: str, level: str, span: Span) -> ColumnElement[bool]:
    of = sums.c
    return and_(of.day.in_(span.days), of.zoo == zoo, of.service_level == level)


def _moment(day: date, hour: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


# The same of the newest requests.

NEWEST = 500
"""Requests that are read, along an index, however long the log is."""
POINTS = 50
"""Most points, each of as many requests as the others."""
TRAILING = 100
"""Requests whose verdicts make the rate of a point: ten would show nothing."""


async def read_newest(connection: AsyncConnection, zoo: str, level: str) -> list[Point]:
    """Read points over the newest requests, the oldest first.

    The rate of a point is over the last ``TRAILING`` requests by then, all else over its own.
    """
    found = await _newest(connection, zoo, level)
    called = await _calls_of(connection, found)
    size = max(1, -(-len(found) // POINTS))
    points = []
    for end in range(size, len(found) + size, size):
        own = found[end - size : end]
        judged = Tally.of(found[max(0, min(end, len(found)) - TRAILING) : end])
        calls = Called()
        for request in own:
            for call in called[request.request_id]:
                failed = int(call.status == CallStatus.FAILURE)
                calls.add(call.candidate or "", call.role, 1, failed)
        last = own[-1]
        points.append(point(last.created_at, Tally.of(own), calls, judged, last.number))
    return points


async def _newest(connection: AsyncConnection, zoo: str, stream: str) -> list[Row[Any]]:
    """Read the outcomes of the newest requests of a stream, along an index, the oldest first."""
    request = requests.c
    query = (
        select(outcomes, request.t.label("number"), request.created_at)
        .join(requests, request.request_id == outcomes.c.request_id)
        .where(request.zoo == zoo, request.service_level == stream)
        .order_by(request.position.desc())
        .limit(NEWEST)
    )
    return list(await connection.execute(query))[::-1]


async def _calls_of(connection: AsyncConnection, found: Iterable[Row[Any]]) -> dict[str, list[Any]]:
    """Read the calls of these requests."""
    of, called = calls.c, defaultdict[str, list[Any]](list)
    ids = [row.request_id for row in found]
    ended = select(of.request_id, of.candidate, of.role, of.status).where(of.request_id.in_(ids))
    for row in await connection.execute(ended):
        called[row.request_id].append(row)
    return called


# How requests were served, routed or as before: how many came and were answered, and how long the
# answers took.

STEPS_OF_NEWEST = tuple(
    timedelta(seconds=each) for each in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600)
)
"""Steps of the newest requests: the shortest with at most ``STEPS_AT_MOST`` points, else days."""
STEPS_AT_MOST = 60
MEDIAN, MOST = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class ServicePoint:
    """One step: requests decided, those served as before, those answered and those failed; and the
    seconds of an answer, None if they were not read."""

    at: datetime
    requests: int = 0
    as_before: int = 0
    answered: int = 0
    failed: int = 0
    median_seconds: float | None = None
    p95_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """The seconds of the answers of one model, None if it is unknown."""

    model: str | None
    answers: int
    median_seconds: float
    p95_seconds: float


@dataclass(frozen=True, slots=True)
class Service:
    """The points of a range; ``latency`` is of the newest ``requests``, whatever the range."""

    step_seconds: float
    points: Sequence[ServicePoint]
    requests: int
    latency: Sequence[Latency]


async def read_service(
    connection: AsyncConnection, zoo: str, level: str, span: Span | None
) -> Service:
    """Read the service over a span; without one, over the newest requests."""
    streams = level, level_before(level)
    both = [row for name in streams for row in await _newest(connection, zoo, name)]
    found = sorted(both, key=lambda row: int(row.position))[-NEWEST:]
    latency = [
        Latency(model, len(seconds), _rank(seconds, MEDIAN), _rank(seconds, MOST))
        for model, seconds in _answered(found).items()
    ]
    latency.sort(key=lambda each: -each.answers)
    if span is None:
        step = _step(found)
        return Service(step.total_seconds(), _points(found, step), len(found), latency)
    own, before = [await read_sums(connection, zoo, name, span) for name in streams]
    points = []
    for at, routed, as_before in zip(span.starts, own, before, strict=True):
        every = routed + as_before
        counts = (every.requests, as_before.requests, every.succeeded, every.failed)
        points.append(ServicePoint(at, *counts))
    return Service(span.step.total_seconds(), points, len(found), latency)


def _step(found: Sequence[Row[Any]]) -> timedelta:
    if not found:
        return STEPS_OF_NEWEST[0]
    times = [row.created_at.astimezone(UTC) for row in found]
    whole = max(times) - min(times)
    return next(
        (step for step in STEPS_OF_NEWEST if whole <= step * (STEPS_AT_MOST - 1)),
        DAY * ceil(whole / DAY / STEPS_AT_MOST),
    )


def _points(found: Iterable[Row[Any]], step: timedelta) -> list[ServicePoint]:
    """Put the requests into steps that begin at round times, including steps without any."""
    steps: dict[datetime, list[Row[Any]]] = defaultdict(list)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for row in found:
        steps[epoch + (row.created_at.astimezone(UTC) - epoch) // step * step].append(row)
    if not steps:
        return []
    first, last = min(steps), max(steps)
    starts = [first + place * step for place in range((last - first) // step + 1)]
    return [_service_point(at, steps.get(at, ())) for at in starts]


def _service_point(at: datetime, rows: Sequence[Row[Any]]) -> ServicePoint:
    statuses = [row.status for row in rows]
    found = ServicePoint(
        at,
        requests=len(rows),
        as_before=sum(row.arm == "before" for row in rows),
        answered=statuses.count(CallStatus.SUCCESS),
        failed=statuses.count(CallStatus.FAILURE),
    )
    seconds = sorted(chain.from_iterable(_answered(rows).values()))
    if not seconds:
        return found
    return replace(found, median_seconds=_rank(seconds, MEDIAN), p95_seconds=_rank(seconds, MOST))


def _answered(found: Iterable[Row[Any]]) -> dict[str | None, list[float]]:
    """Group the seconds of models' answers by model, without answers from a cache."""
    by_model: dict[str | None, list[float]] = defaultdict(list)
    for row in found:
        if row.status == CallStatus.SUCCESS and row.seconds is not None and not row.is_cache_hit:
            by_model[row.served].append(row.seconds)
    return {model: sorted(seconds) for model, seconds in by_model.items()}


def _rank(seconds: Sequence[float], share: float) -> float:
    """Return the quantile at ``share`` of the sorted seconds, by nearest rank."""
    return seconds[ceil(share * len(seconds)) - 1]
