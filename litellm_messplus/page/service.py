"""How the requests of a promise were served, however they were routed: how many came, how many were
answered, and how long that took. Those that are served as before are among them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import ceil
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.page.newest import NEWEST
from litellm_messplus.page.series import read_sums
from litellm_messplus.page.span import Span
from litellm_messplus.store.sum_tables import outcomes
from litellm_messplus.store.tables import requests
from litellm_messplus.vocabulary import CallStatus, level_before

STEPS = tuple(timedelta(seconds=each) for each in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600))
"""Of the newest requests: the shortest that makes no more than ``POINTS`` points, else days."""
POINTS = 60
MEDIAN, MOST = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class ServicePoint:
    """One step: requests decided, those of them that were served as before, that were answered and
    that failed; and seconds of an answer, None where they were not read."""

    at: datetime
    requests: int = 0
    as_before: int = 0
    answered: int = 0
    failed: int = 0
    median_seconds: float | None = None
    p95_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """The seconds of the answers that one model gave; None is one that nobody knows."""

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

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        points = [{**asdict(each), "at": each.at.isoformat()} for each in self.points]
        return {
            **asdict(self),
            "points": points,
            "latency": [asdict(each) for each in self.latency],
        }


async def read_service(
    connection: AsyncConnection, zoo: str, level: str, span: Span | None
) -> Service:
    """Read it over a span; without one, over the newest requests."""
    found = await _newest(connection, zoo, level)
    latency = sorted(_latency(found), key=lambda each: -each.answers)
    if span is None:
        step = _step(found)
        return Service(step.total_seconds(), _points(found, step), len(found), latency)
    sums = await read_sums(connection, zoo, level, span)
    before = await read_sums(connection, zoo, level_before(level), span)
    points = [
        ServicePoint(
            at,
            own.requests + other.requests,
            other.requests,
            own.succeeded + other.succeeded,
            own.failed + other.failed,
        )
        for at, own, other in zip(span.starts, sums, before, strict=True)
    ]
    return Service(span.step.total_seconds(), points, len(found), latency)


async def _newest(connection: AsyncConnection, zoo: str, level: str) -> list[Row[Any]]:
    """Read the newest requests of both streams, each along an index, the oldest first."""
    asked, of = requests.c, outcomes.c
    query = select(
        *(asked.created_at, asked.position, of.arm, of.served, of.status, of.seconds),
        of.is_cache_hit,
    ).join(requests, asked.request_id == of.request_id)
    found: list[Row[Any]] = []
    for stream in (level, level_before(level)):
        own = query.where(asked.zoo == zoo, asked.service_level == stream)
        found += await connection.execute(own.order_by(asked.position.desc()).limit(NEWEST))
    return sorted(found, key=lambda row: int(row.position))[-NEWEST:]


def _step(found: Sequence[Row[Any]]) -> timedelta:
    if not found:
        return STEPS[0]
    times = [_utc(row.created_at) for row in found]
    whole = max(times) - min(times)
    day = timedelta(days=1)
    return next(
        (step for step in STEPS if whole <= step * (POINTS - 1)), day * ceil(whole / day / POINTS)
    )


def _points(found: Iterable[Row[Any]], step: timedelta) -> list[ServicePoint]:
    """Put the requests into steps that begin at round times, those without any among them."""
    steps: dict[datetime, list[Row[Any]]] = defaultdict(list)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for row in found:
        steps[epoch + (_utc(row.created_at) - epoch) // step * step].append(row)
    if not steps:
        return []
    first, last = min(steps), max(steps)
    starts = [first + place * step for place in range((last - first) // step + 1)]
    return [_point(at, steps.get(at, ())) for at in starts]


def _point(at: datetime, rows: Sequence[Row[Any]]) -> ServicePoint:
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


def _latency(found: Iterable[Row[Any]]) -> list[Latency]:
    return [
        Latency(model, len(seconds), _rank(seconds, MEDIAN), _rank(seconds, MOST))
        for model, seconds in _answered(found).items()
    ]


def _answered(found: Iterable[Row[Any]]) -> dict[str | None, list[float]]:
    """Sort the seconds of what models answered, by model; what a cache repeated is left out."""
    by_model: dict[str | None, list[float]] = defaultdict(list)
    for row in found:
        if row.status == CallStatus.SUCCESS and row.seconds is not None and not row.is_cache_hit:
            by_model[row.served].append(row.seconds)
    return {model: sorted(seconds) for model, seconds in by_model.items()}


def _rank(seconds: Sequence[float], share: float) -> float:
    """Return the least of the sorted seconds that so large a share does not exceed."""
    return seconds[ceil(share * len(seconds)) - 1]


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
