"""One promise over time, for the charts: the outcomes of its requests, and which models served.

A range of days is read from the sums by hour or by day, never from the log: by day and promise
along the primary keys, so the time of a reading grows with the span, not with the number of
requests or promises. Right after a start days show nothing: then the newest requests are read, a
bounded number along an index.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, taken, tallies
from litellm_messplus.runtime.vocabulary import SERVING, CallRole, CallStatus, level_before
from litellm_messplus.status.reading import FEWEST
from litellm_messplus.status.switches import change_in_words
from litellm_messplus.store.hours import CALLS, REQUESTS
from litellm_messplus.store.tables import JUDGING, outcomes, requests
from litellm_messplus.store.zoo_modes import WAY_BACK, zoo_modes


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

MUCH = 0.2
"""The failed share of a step's requests above which it is marked."""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a chart. Shares are from 0 to 1, costs in the zoo's unit; None is unknown.

    ``promised`` is alpha, its mean if it changed within the step. ``paid`` and ``paid_at_largest``
    are what the savings compare. ``served`` counts the answers by model, whose name is empty
    outside of the zoo.
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
    served: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at a time: a change of the mode, or what needed attention."""

    at: datetime
    is_alarm: bool
    words: str


@dataclass(frozen=True, slots=True)
class Charted:
    """The points of a range; ``is_before`` if nothing was routed in it, so that they show what was
    served as before."""

    step_seconds: float
    is_before: bool
    points: Sequence[Point]
    marks: Sequence[Mark]


async def read_days(connection: AsyncConnection, zoo: str, level: str, span: Span) -> Charted:
    """Read a point for each step of the span, including those without requests."""
    stream = level
    sums = await read_sums(connection, zoo, stream, span)
    is_before = not any(each.requests for each in sums)
    if is_before:
        stream = level_before(level)
        sums = await read_sums(connection, zoo, stream, span)
    served = await _served(connection, zoo, stream, span)
    points = [_point(*step) for step in zip(span.starts, sums, served, sums, strict=True)]
    marks = [*_failing(span, sums), *await _modes(connection, zoo, span)]
    is_before = is_before and any(each.requests for each in sums)
    return Charted(span.step.total_seconds(), is_before, points, marks)


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


async def _served(
    connection: AsyncConnection, zoo: str, stream: str, span: Span
) -> list[Counter[str]]:
    """Count the answers of each step by model."""
    steps = [Counter[str]() for _ in span.starts]
    of, by = CALLS.c, ("day", "hour") if span.is_hourly else ("day",)
    is_theirs = _of(CALLS, zoo, stream, span) & (of.role == CallRole.SERVED)
    columns = *(of[name] for name in by), of.candidate, of.calls - of.failures
    for *when, candidate, answers in await connection.execute(select(*columns).where(is_theirs)):
        place = span.place(_moment(*when))
        if place is not None and answers:
            steps[place][candidate] += answers
    return steps


def _point(at: datetime, own: Tally, served: Mapping[str, int], judged: Tally) -> Point:
    """Compute a point from its ``own`` requests, and from those that were ``judged``."""
    return taken(
        Point,
        own,
        **{name: getattr(judged, name) for name in ("judged", "promised", "rate", "low", "high")},
        at=at,
        answered=own.succeeded,
        paid_at_largest=own.compared_cost_largest,
        served=dict(served),
    )


def _failing(span: Span, sums: Sequence[Tally]) -> Iterator[Mark]:
    """Mark where each run of steps begins in which many requests failed."""
    ended = [(at, each) for at, each in zip(span.starts, sums, strict=True) if _ended(each)]
    for is_bad, run in groupby(ended, lambda step: _lost(step[1]) > MUCH * _ended(step[1])):
        (begin, total), *others = run
        for _, each in others:
            total += each
        if is_bad and _ended(total) >= FEWEST:
            yield Mark(begin, True, f"{_lost(total)} of {_ended(total)} requests failed")


def _ended(tally: Tally) -> int:
    return tally.succeeded + tally.failed


def _lost(tally: Tally) -> int:
    return sum(getattr(tally, f"failed_{each}") for each in SERVING)


async def _modes(connection: AsyncConnection, zoo: str, span: Span) -> list[Mark]:
    """Mark the changes of the zoo's mode; the ones that it made itself need attention."""
    of = zoo_modes.c
    query = select(of.at, of.by, of.mode, of.share, of.reason)
    query = query.where(of.zoo == zoo, of.at >= span.begin, of.at < span.end)
    return [
        Mark(
            row.at.astimezone(UTC),
            row.by == WAY_BACK,
            change_in_words(row.mode, row.share, row.reason),
        )
        for row in await connection.execute(query.order_by(of.revision))
    ]


def _of(sums: FromClause, zoo: str, level: str, span: Span) -> ColumnElement[bool]:
    of = sums.c
    return and_(of.day.in_(span.days), of.zoo == zoo, of.service_level == level)


def _moment(day: date, hour: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


# The same of the newest requests.

NEWEST = 500
"""Requests that are read, along an index, however long the log is."""
TRAILING = 100
"""Requests whose verdicts make the rate of a point: those of its own step would show nothing."""
STEPS_OF_NEWEST = tuple(
    timedelta(seconds=each) for each in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600)
)
"""Steps of the newest requests: the shortest with at most ``STEPS_AT_MOST`` points, else days."""
STEPS_AT_MOST = 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def read_newest(connection: AsyncConnection, zoo: str, level: str) -> Charted:
    """Read points over the newest requests, in steps that begin at round times, including those
    without requests. The rate of a point is over the last ``TRAILING`` requests by then, all else
    over its own."""
    own = await newest_outcomes(connection, zoo, level)
    found = own or await newest_outcomes(connection, zoo, level_before(level))
    if not found:
        return Charted(0.0, False, [], [])
    times = [row.created_at.astimezone(UTC) for row in found]
    span = _span_of(min(times), max(times))
    steps: dict[int, list[Row[Any]]] = defaultdict(list)
    for row, at in zip(found, times, strict=True):
        steps[(at - span.begin) // span.step].append(row)
    points, sums, done = [], [], list[Row[Any]]()
    for place, at in enumerate(span.starts):
        rows = steps[place]
        done += rows
        sums.append(Tally.of(rows))
        judged = Tally.of(done[-TRAILING:] if rows else ())
        answered = (row.served or "" for row in rows if row.status == CallStatus.SUCCESS)
        points.append(_point(at, sums[-1], Counter(answered), judged))
    marks = [*_failing(span, sums), *await _modes(connection, zoo, span)]
    return Charted(span.step.total_seconds(), not own, points, marks)


async def newest_outcomes(connection: AsyncConnection, zoo: str, stream: str) -> list[Row[Any]]:
    """Read the outcomes of the newest requests of a stream, along an index, the oldest first."""
    request = requests.c
    query = (
        select(outcomes, request.created_at)
        .join(requests, request.request_id == outcomes.c.request_id)
        .where(request.zoo == zoo, request.service_level == stream)
        .order_by(request.position.desc())
        .limit(NEWEST)
    )
    return list(await connection.execute(query))[::-1]


def _span_of(first: datetime, last: datetime) -> Span:
    whole = last - first
    fitting = (step for step in STEPS_OF_NEWEST if whole <= step * (STEPS_AT_MOST - 1))
    step = next(fitting, DAY * ceil(whole / DAY / (STEPS_AT_MOST - 1)))
    begin, end = (EPOCH + (each - EPOCH) // step * step for each in (first, last))
    return Span(begin, end + step, step)


# Models.


async def read_models(connection: AsyncConnection, zoo: str) -> list[str]:
    """Read the models of a zoo in the order of their first calls, which no later call changes:
    the colour of a model goes by it."""
    of = CALLS.c
    by = of.candidate, of.day
    query = select(*by, func.min(of.hour)).group_by(*by)
    first: dict[str, tuple[date, int]] = {}
    for name, *at in await connection.execute(
        query.where(of.zoo == zoo, of.candidate != "", of.role != JUDGING)
    ):
        first[name] = min(first.get(name, (date.max, 0)), tuple(at))
    return sorted(first, key=lambda name: (first[name], name))
