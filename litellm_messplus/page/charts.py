"""One promise over time, for the charts: the outcomes of its requests, and which models served.

A range of days is read from the sums by hour or by day, never from the log: by day and promise
along the primary keys, so the time of a reading grows with the span, not with the number of
requests or promises. Right after a start days show nothing: then the newest requests are read, a
bounded number along an index.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, and_, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.figures.templates import written
from litellm_messplus.runtime.vocabulary import SERVING, CallRole, CallStatus, level_before
from litellm_messplus.status.reading import FEWEST
from litellm_messplus.store.hours import CALLS, REQUESTS
from litellm_messplus.store.tables import JUDGING, outcomes, requests
from litellm_messplus.store.zoo_modes import WAY_BACK, zoo_modes

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

CHANGE = "{{ mode }}{{ ' (%.0f %% routed)' % (100 * share) if mode == 'canary' }}: {{ reason }}"
"""A change of the mode in words."""
MUCH = 0.2
"""The failed share of a step's requests above which it is marked."""


SHOWN = ("requests", "failed", "cost", "paid")
OF_VERDICTS = ("judged", "promised", "rate", "low", "high")


Steps = tuple[Span, Sequence[Tally], Sequence[Tally], Sequence[Mapping[str, int]]]
"""A span, and of each of its steps: its requests, those whose verdicts make its rate, and how many
answers each model gave."""


async def read_series(
    connection: AsyncConnection, zoo: str, level: str, span: Span | None
) -> Plain:
    """Read a point for each step of the span, or of the newest requests, including those without
    requests; of what was served as before where nothing was routed."""
    for stream in (level, level_before(level)):
        if span is None:
            found = await _newest(connection, zoo, stream)
        else:
            found = await _days(connection, zoo, stream, span)
        over, sums, judged, served = found
        if any(each.requests for each in sums):
            break
    return {
        "step_seconds": over.step.total_seconds(),
        "is_before": stream != level,
        "points": list(map(_point, over.starts, sums, judged, served)),
        "marks": [*_failing(over, sums), *await _modes(connection, zoo, over)],
    }


async def _days(connection: AsyncConnection, zoo: str, stream: str, span: Span) -> Steps:
    """Read the sums and the calls of a stream."""
    sums = [Tally() for _ in span.starts]
    served = [Counter[str]() for _ in span.starts]
    by, of = ("day", "hour") if span.is_hourly else ("day",), CALLS.c
    where = _of(REQUESTS, zoo, stream, span)
    for when, tally in (await tallies(connection, *by, source=REQUESTS, where=where)).items():
        if (place := span.place(_moment(*when))) is not None:
            sums[place] += tally
    columns = *(of[name] for name in by), of.candidate, of.calls - of.failures
    query = select(*columns).where(_of(CALLS, zoo, stream, span), of.role == CallRole.SERVED)
    for *at, candidate, answers in await connection.execute(query):
        if (place := span.place(_moment(*at))) is not None:
            served[place][candidate] += answers
    return span, sums, sums, served


def _point(at: datetime, own: Tally, judged: Tally, served: Mapping[str, int]) -> Plain:
    """Compute a point from its ``own`` requests, and from those that were ``judged``: `promised` is
    alpha, `paid` and `paid_at_largest` are what the savings compare, `served` counts the answers by
    model, whose name is empty outside of the zoo."""
    return {
        "at": at.isoformat(),
        "answered": own.succeeded,
        "paid_at_largest": own.compared_cost_largest,
        "served": dict(served),
        **{name: getattr(own, name) for name in SHOWN},
        **{name: getattr(judged, name) for name in OF_VERDICTS},
    }


def _mark(at: datetime, is_alarm: bool, words: str) -> Plain:
    """Mark what happened at a time."""
    return {"at": at.isoformat(), "is_alarm": is_alarm, "words": words}


def _failing(span: Span, sums: Sequence[Tally]) -> Iterator[Plain]:
    """Mark where each run of steps begins in which many requests failed."""
    ended = [(at, each) for at, each in zip(span.starts, sums, strict=True) if _ended(each)]
    for is_bad, run in groupby(ended, lambda step: _lost(step[1]) > MUCH * _ended(step[1])):
        (begin, total), *others = run
        for _, each in others:
            total += each
        if is_bad and _ended(total) >= FEWEST:
            yield _mark(begin, True, f"{_lost(total)} of {_ended(total)} requests failed")


def _ended(tally: Tally) -> int:
    return tally.succeeded + tally.failed


def _lost(tally: Tally) -> int:
    return sum(getattr(tally, f"failed_{each}") for each in SERVING)


async def _modes(connection: AsyncConnection, zoo: str, span: Span) -> list[Plain]:
    """Mark the changes of the zoo's mode; the ones that it made itself need attention."""
    of = zoo_modes.c
    query = select(zoo_modes).where(of.zoo == zoo, of.at >= span.begin, of.at < span.end)
    return [
        _mark(row.at.astimezone(UTC), row.by == WAY_BACK, written(CHANGE, dict(row._mapping)))
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
STEPS_OF_NEWEST = 50
"""Steps that the newest requests are divided into, of whole seconds."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def _newest(connection: AsyncConnection, zoo: str, stream: str) -> Steps:
    """Read the newest requests of a stream, in steps of whole seconds. The rate of a point
    is over the last ``TRAILING`` requests by then, all else over its own."""
    found = await newest_outcomes(connection, zoo, stream)
    times = [row.created_at.astimezone(UTC) for row in found] or [EPOCH]
    begin = min(times).replace(microsecond=0)
    step = timedelta(seconds=1 + (max(times) - begin).total_seconds() // STEPS_OF_NEWEST)
    span = Span(begin, begin + STEPS_OF_NEWEST * step, step)
    steps: list[list[Row[Any]]] = [[] for _ in span.starts]
    for row, at in zip(found, times, strict=False):
        steps[(at - span.begin) // span.step].append(row)
    judged, served, done = [], [], list[Row[Any]]()
    for rows in steps:
        done += rows
        judged.append(Tally.of(done[-TRAILING:]))
        answered = (row.served or "" for row in rows if row.status == CallStatus.SUCCESS)
        served.append(Counter(answered))
    return span, list(map(Tally.of, steps)), judged, served


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


# Models and keys.

SPENT_OF = 5_000
"""The newest requests of a promise whose spend is shown."""
SPENDERS = 20
"""Most pairs of a key and a team that are shown, those that spent most."""


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


async def read_uses(connection: AsyncConnection, zoo: str, level: str, span: Span) -> list[Plain]:
    """Read what each model did, however requests were served; its name is empty outside of the
    zoo. The seconds are of the newest answers, without those from a cache."""
    of, streams = CALLS.c, (level, level_before(level))
    amounts = of.calls, of.failures, of.prompt_tokens, of.completion_tokens, of.cost
    query = (
        select(of.candidate, *(func.sum(each).label(each.name) for each in amounts))
        .where(of.day.in_(span.days), of.zoo == zoo, of.service_level.in_(streams))
        .where(of.role != JUDGING)
        .group_by(of.candidate)
        .order_by(of.candidate)
    )
    seconds: dict[str, list[float]] = defaultdict(list)
    for stream in streams:
        for row in await newest_outcomes(connection, zoo, stream):
            if row.status == CallStatus.SUCCESS and row.seconds and not row.is_cache_hit:
                seconds[row.served or ""].append(row.seconds)
    return [
        {
            **row._mapping,
            "median": _rank(seconds[row.candidate], 0.5),
            "p95": _rank(seconds[row.candidate], 0.95),
        }
        for row in await connection.execute(query)
    ]


def _rank(seconds: list[float], share: float) -> float | None:
    """Return the quantile at ``share``, by nearest rank; None without any."""
    return sorted(seconds)[ceil(share * len(seconds)) - 1] if seconds else None


async def read_spend(connection: AsyncConnection, zoo: str, level: str) -> list[Plain]:
    """Read who caused the newest requests of a promise, however these were served."""
    request, streams = requests.c, (level, level_before(level))
    newest = (
        select(request.request_id, request.key_hash, request.key_alias, request.team_id)
        .where(request.zoo == zoo, request.service_level.in_(streams))
        .order_by(request.position.desc())
        .limit(SPENT_OF)
        .subquery()
    )
    of, found = newest.c, outcomes.c
    whose = of.key_hash, of.team_id
    cost = func.coalesce(func.sum(found.cost), 0.0).label("cost")
    failed = func.count(case((found.status == CallStatus.FAILURE, 1))).label("failed")
    query = (
        select(*whose, func.max(of.key_alias).label("key_alias"))
        .add_columns(func.count().label("requests"), failed, cost)
        .join(outcomes, found.request_id == of.request_id)
        .group_by(*whose)
        .order_by(cost.desc(), func.count().desc())
        .limit(SPENDERS)
    )
    return [dict(row._mapping) for row in await connection.execute(query)]
