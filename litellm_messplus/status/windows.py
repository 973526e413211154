"""Sums of requests into the status of a window: what was kept, at what cost."""

from collections.abc import Sequence

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import Interval, is_thin, points_below, verdict, wilson
from litellm_messplus.status.queries import Calls, Key, Start, Totals, within
from litellm_messplus.status.report import (
    BestSingle,
    BestSingleState,
    Cost,
    Exploration,
    Labels,
    Overhead,
    Satisfaction,
    Savings,
    WindowStatus,
)
from litellm_messplus.store.tables import calls, requests


def window_status(
    totals: Totals | None,
    without_cost: int,
    alpha: float,
    labels: Labels,
    overhead: Overhead | None,
) -> WindowStatus:
    """Describe the requests that ``totals`` sums up, None for no requests; ``alpha`` is of now."""
    return WindowStatus(
        satisfaction=_satisfaction(totals, alpha),
        labels=labels,
        cost=_cost(totals, without_cost),
        exploration=_exploration(totals),
        savings=_savings(totals),
        overhead=overhead,
    )


def _satisfaction(totals: Totals | None, alpha: float) -> Satisfaction:
    counted, answered = (totals.counted, totals.answered) if totals else (0, 0)
    unit = totals.unit if totals else "requests"
    rate = totals.rate if totals else None
    promised = totals.mean_alpha if totals and totals.mean_alpha is not None else alpha
    effective = totals.effective if totals else 0.0
    interval = interval_of(rate, effective)
    return Satisfaction(
        requests=counted,
        answered=answered,
        answered_share=share(answered, counted),
        effective=effective,
        promised=promised,
        rate=rate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        verdict=verdict(interval, promised),
        is_thin=is_thin(interval, effective),
        evidence=evidence(interval, answered, counted, effective, unit),
        kept_within_points=points_below(interval, promised),
        unit=unit,
    )


def interval_of(rate: float | None, count: float) -> Interval | None:
    """Compute the interval around a mean that the database made; None of no verdicts."""
    return None if rate is None else wilson(min(max(rate, 0.0), 1.0), count)


def evidence(
    interval: Interval | None, answered: int, counted: int, effective: float, unit: str
) -> str:
    """Say in words how much the figures rest on."""
    if counted == 0:
        return f"no {unit} yet"
    told = f"{answered} of {counted} {unit} with a verdict"
    if round(effective) < answered:
        told += f", worth {effective:.0f}"
    if not is_thin(interval, effective):
        return told
    width = f", interval {100 * interval.width:.0f} points wide" if interval else ""
    return f"not enough evidence: {told}{width}"


def _cost(totals: Totals | None, without_cost: int) -> Cost:
    if totals is None or totals.priced == 0:
        known = totals.cost if totals and totals.cost > 0.0 else None
        return Cost(total=known, per_request=None, calls_without_cost=without_cost)
    return Cost(totals.cost, totals.priced_cost / totals.priced, without_cost)


def _exploration(totals: Totals | None) -> Exploration:
    if totals is None:
        return Exploration(requests=0, share=None, cost=0.0, cost_share=None)
    return Exploration(
        requests=totals.explorations,
        share=share(totals.explorations, totals.requests),
        cost=totals.exploration_cost,
        cost_share=share(totals.exploration_cost, totals.cost),
    )


def _savings(totals: Totals | None) -> Savings | None:
    if totals is None or totals.compared == 0:
        return None
    saved = totals.compared_cost_largest - totals.compared_cost
    return Savings(
        requests=totals.compared,
        cost_largest=totals.compared_cost_largest,
        saved=saved,
        saved_share=share(saved, totals.compared_cost_largest),
    )


def share(part: float, whole: float) -> float | None:
    """Divide a part by the whole; None where there is none."""
    return part / whole if whole else None


# The best single model that would have met alpha: an estimate from the calls that were judged.

ENOUGH_LABELLED = 30
"""Verdicts below which a model is not considered: three happy users make no model good."""


def best_single(
    calls: Sequence[Calls], candidates: Sequence[str], totals: Totals | None, alpha: float
) -> BestSingle:
    """Find the cheapest model whose mean verdict is at least ``alpha``, and what it would have
    cost.

    ``candidates`` are all of the zoo's, called or not.
    """
    judged = [each for each in calls if each.labelled >= ENOUGH_LABELLED]
    prices = {each.candidate: each.mean_cost for each in judged if each.mean_cost is not None}
    names = {*candidates, *(each.candidate for each in calls)}
    unjudged = tuple(sorted(names - prices.keys()))
    fit = [
        each
        for each in judged
        if each.candidate in prices and each.rate is not None and each.rate >= alpha
    ]
    if fit:
        best = min(fit, key=lambda each: (prices[each.candidate], each.candidate))
        return _found(best, prices[best.candidate], totals, unjudged)
    if unjudged or not names:
        return BestSingle(BestSingleState.UNKNOWN, _unknown(unjudged), unjudged)
    return BestSingle(
        BestSingleState.NONE, f"estimate: no single model meets alpha {alpha:g}", unjudged,
        labelled=min(each.labelled for each in judged), is_thin=False,
    )  # fmt: skip


def _found(
    best: Calls, price: float, totals: Totals | None, unjudged: tuple[str, ...]
) -> BestSingle:
    requests = totals.priced if totals else 0
    cost = price * requests
    saved = cost - totals.priced_cost if totals and requests else None
    return BestSingle(
        finding=BestSingleState.FOUND,
        note=f"estimate from {best.labelled} verdicts on its calls{_left_out(unjudged)}",
        unjudged=unjudged,
        candidate=best.candidate,
        satisfaction=best.rate,
        labelled=best.labelled,
        is_thin=is_thin(interval_of(best.rate, best.effective), best.effective),
        cost_per_request=price,
        requests=requests,
        saved=saved,
        saved_share=share(saved, cost) if saved is not None else None,
    )


def _unknown(unjudged: Sequence[str]) -> str:
    return f"not enough evidence{_left_out(unjudged)}"


def _left_out(unjudged: Sequence[str]) -> str:
    if not unjudged:
        return ""
    return f"; fewer than {ENOUGH_LABELLED} verdicts or no known cost: {', '.join(unjudged)}"


# What predicting and deciding take beside the calls themselves.


async def overheads(connection: AsyncConnection, start: Start) -> dict[Key, Overhead]:
    """Average the overheads over the requests of a window."""
    asked = requests.c
    predicting = func.coalesce(asked.encode_seconds, 0.0)
    query = (
        select(
            asked.zoo,
            asked.service_level,
            func.count(),
            func.sum(case((asked.encode_seconds.is_(None), 1), else_=0)),
            func.avg(predicting),
            func.avg(asked.decision_seconds - predicting),
            func.avg(calls.c.seconds),
            func.avg(asked.encode_joules),
        )
        .select_from(calls)
        .join(requests, asked.request_id == calls.c.request_id)
        .where(calls.c.role == "served", calls.c.seconds.is_not(None))
        .group_by(asked.zoo, asked.service_level)
    )
    query = within(query, calls.c.request_id, start)
    return {(row[0], row[1]): overhead(*row[2:]) for row in await connection.execute(query)}


def overhead(
    requests: int,
    late: int,
    predicting: float,
    deciding: float,
    call: float,
    joules: float | None,
) -> Overhead:
    """Build the overhead for the report: of so many requests, the means of what each part took."""
    deciding = max(deciding, 0.0)  # both are measured by one clock, but rounded
    whole = predicting + deciding + call or 1.0
    return Overhead(
        requests, late, predicting, deciding, call,
        predicting / whole, deciding / whole, call / whole, joules,
    )  # fmt: skip
