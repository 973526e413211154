"""The limits beside alpha: how late requests were, what today has cost, and which limit binds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from sqlalchemy import case, false, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import ENOUGH_ANSWERED, Interval, wilson
from litellm_messplus.figures.shown import LEVEL, described
from litellm_messplus.figures.tally import tallies
from litellm_messplus.figures.words import figure, percent, percent_around
from litellm_messplus.routing.limits import LATE_SHARE, allowed_share
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.status.queries import (
    RECENT_DECISIONS,
    Key,
    Start,
    is_since,
    window_start,
    within,
)
from litellm_messplus.store.sum_tables import request_sums
from litellm_messplus.store.tables import calls, requests

OVER = 1.02
"""Times the budget that a day may cost until it is told: the last requests are not known before."""

# What the log says.


@dataclass(frozen=True, slots=True)
class LimitFigures:
    """The figures of one service level: the ``newest`` request's column `limits`, what binds by
    most of the newest decisions, ``late`` of the ``ended`` requests of the window, and what today's
    requests have cost, ``elapsed`` seconds after midnight (UTC)."""

    newest: Mapping[str, Any]
    binding: str | None
    late: int
    ended: int
    spent: float
    elapsed: float


async def read_limits(
    connection: AsyncConnection, start: Start, now: datetime
) -> dict[Key, LimitFigures]:
    """Read the figures of the service levels whose newest request had limits; ``start`` is where
    the window begins."""
    newest: dict[Key, list[Mapping[str, Any] | None]] = {}
    query = (
        select(requests.c.zoo, requests.c.service_level, requests.c.limits)
        .where(is_since(await window_start(connection, RECENT_DECISIONS)))
        .order_by(requests.c.position.desc())
    )
    for row in await connection.execute(query):
        newest.setdefault((row.zoo, row.service_level), []).append(row.limits)
    limited = {key: found for key, found in newest.items() if found[0] is not None}
    if not limited:
        return {}
    late = await _late(connection, start, {key: found[0] or {} for key, found in limited.items()})
    spent = await _spent(connection, now)
    elapsed = (now - datetime.combine(now.date(), time.min, UTC)).total_seconds()
    return {
        key: LimitFigures(
            found[0] or {},
            _binding(found),
            *late.get(key, (0, 0)),
            spent.get(key, 0.0),
            elapsed,
        )
        for key, found in limited.items()
    }


def _binding(found: list[Mapping[str, Any] | None]) -> str | None:
    """Find what binds by more than half of the newest decisions."""
    told = [None if each is None else each["binding"] for each in found]
    return next((each for each in ("budget", "latency") if 2 * told.count(each) > len(told)), None)


async def _late(
    connection: AsyncConnection, start: Start, limits: Mapping[Key, Mapping[str, Any]]
) -> dict[Key, tuple[int, int]]:
    """Count late requests, and those that ended and say whether they were, by the limits of now.

    What is late is told as in the fold: an answer of LiteLLM's cache never is, and a failure says
    nothing.
    """
    over = or_(
        false(),
        *(
            (requests.c.zoo == zoo)
            & (requests.c.service_level == level)
            & (calls.c.seconds > each["late_after"])
            for (zoo, level), each in limits.items()
            if "late_after" in each
        ),
    )
    late = ~calls.c.is_cache_hit & over
    is_timed = calls.c.is_cache_hit | calls.c.seconds.is_not(None)
    query = (
        select(
            requests.c.zoo,
            requests.c.service_level,
            func.count(case((late, 1))),
            func.count(case((is_timed, 1))),
        )
        .join_from(requests, calls, calls.c.call_id == requests.c.request_id + ".0")
        .where(requests.c.limits.is_not(None), calls.c.status == "success")
        .group_by(requests.c.zoo, requests.c.service_level)
    )
    query = within(query, requests.c.request_id, start)
    return {(row[0], row[1]): (row[2], row[3]) for row in await connection.execute(query)}


async def _spent(connection: AsyncConnection, now: datetime) -> dict[Key, float]:
    is_today = request_sums.c.day == now.date()
    level = ("zoo", "service_level")
    found = await tallies(connection, *level, source=request_sums, where=is_today)
    return {(zoo, name): tally.cost for (zoo, name), tally in found.items()}


# What is shown of it.


@described(LEVEL, "limits.latency.")
@dataclass(frozen=True, slots=True)
class LatencyStatus:
    """The limit of latency: how many of the last window took longer than ``seconds``."""

    seconds: float
    ended: int
    late: int
    allowed_share: float
    late_share: float | None
    low: float | None
    high: float | None
    late_owed: float
    late_price: float


@described(LEVEL, "limits.budget.")
@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The budget of the day (UTC), in the zoo's unit."""

    per_day: float
    spent: float
    allowed: float
    strain: float


@described(LEVEL, "limits.")
@dataclass(frozen=True, slots=True)
class LimitsStatus:
    """The limits of a service level; None for one that is not set. ``binding`` is the one that
    decides who serves: `budget`, `latency`, or None."""

    binding: str | None
    latency: LatencyStatus | None
    budget: BudgetStatus | None


def limits_status(found: LimitFigures | None) -> LimitsStatus | None:
    """Build what is shown; None of a level without limits."""
    if found is None:
        return None
    newest = found.newest
    return LimitsStatus(
        found.binding,
        _latency(found) if "late_after" in newest else None,
        _budget(found) if "budget" in newest else None,
    )


def _latency(found: LimitFigures) -> LatencyStatus:
    around = _interval(found.late, found.ended)
    return LatencyStatus(
        seconds=found.newest["late_after"],
        ended=found.ended,
        late=found.late,
        allowed_share=LATE_SHARE,
        late_share=found.late / found.ended if found.ended else None,
        low=around.low if around else None,
        high=around.high if around else None,
        late_owed=found.newest["late_owed"],
        late_price=found.newest["late_price"],
    )


def _interval(late: int, ended: int) -> Interval | None:
    return wilson(late / ended, float(ended)) if ended else None


def _budget(found: LimitFigures) -> BudgetStatus:
    per_day = found.newest["budget"]
    return BudgetStatus(
        per_day, found.spent, per_day * allowed_share(found.elapsed), found.newest["strain"]
    )


# The same in words, and what needs attention.


def limit_words(limits: LimitsStatus | None, missed: float | None) -> Iterator[str]:
    """Say which limit binds; ``missed`` is by how much the newest requests miss alpha, as a
    share."""
    if limits is None or limits.binding is None:
        return
    if limits.binding == "budget":
        yield f"budget binds: {_missed(missed)}"
    elif limits.latency is not None:
        share = percent(limits.latency.late_share)
        yield f"latency binds: {share} took longer than {limits.latency.seconds:g} s"


def _missed(missed: float | None) -> str:
    if missed is None:
        return "no verdict says by how much alpha is missed"
    if missed <= 0.0:
        return "alpha is held"
    return f"alpha is missed by {100.0 * missed:.1f} points"


def limit_alerts(
    limits: LimitsStatus | None, missed: float | None, answered: int
) -> Iterator[tuple[AlertKind, str]]:
    """Yield the alerts about limits. Alpha is missed by so much on the newest ``answered``
    requests."""
    if limits is None:
        return
    is_missed = missed is not None and missed > 0.0 and answered >= ENOUGH_ANSWERED
    if limits.binding == "budget" and is_missed:
        yield AlertKind.BUDGET_BINDS, f"the budget of the day binds: {_missed(missed)}"
    budget, latency = limits.budget, limits.latency
    if budget is not None and budget.spent > OVER * budget.per_day:
        yield (
            AlertKind.OVER_BUDGET,
            f"today has cost {figure(budget.spent)}, of a budget of {figure(budget.per_day)}: the "
            "least expensive candidate serves",
        )
    if latency is not None and latency.low is not None and latency.low > latency.allowed_share:
        yield (
            AlertKind.TOO_LATE,
            f"{percent(latency.late_share)} of {latency.ended} requests took longer than "
            f"{latency.seconds:g} s, {percent(latency.allowed_share)} may",
        )


def limit_rows(limits: LimitsStatus | None, unit: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each limit: its name, nothing of the whole time, and how it stands."""
    if limits is None:
        return
    latency, budget = limits.latency, limits.budget
    if latency is not None:
        late = percent_around(latency.late_share, latency.low, latency.high)
        allowed = f"{late}, {percent(latency.allowed_share)} may"
        yield f"longer than {latency.seconds:g} s", "", allowed
    if budget is not None:
        spent = f"{figure(budget.spent)} of {figure(budget.per_day, unit)}"
        yield "budget of the day", "", f"{spent}, {figure(budget.allowed)} given out so far"
    yield "what binds", "", limits.binding or "alpha alone"
