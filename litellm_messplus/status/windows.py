"""Sums of requests into the status of a window: what was kept, at what cost."""

from litellm_messplus.status.interval import Interval, is_thin, points_below, verdict, wilson
from litellm_messplus.status.label_report import Labels
from litellm_messplus.status.queries import Totals
from litellm_messplus.status.report import (
    Cost,
    Exploration,
    Overhead,
    Satisfaction,
    Savings,
    WindowStatus,
)


def window_status(
    totals: Totals | None,
    without_cost: int,
    alpha: float,
    labels: Labels,
    overhead: Overhead | None,
) -> WindowStatus:
    """Of the requests that ``totals`` sums up, None for no requests; ``alpha`` is of now."""
    return WindowStatus(
        satisfaction=_satisfaction(totals, alpha),
        labels=labels,
        cost=_cost(totals, without_cost),
        exploration=_exploration(totals),
        savings=_savings(totals),
        overhead=overhead,
    )


def _satisfaction(totals: Totals | None, alpha: float) -> Satisfaction:
    requests, answered = (totals.requests, totals.answered) if totals else (0, 0)
    rate = totals.rate if totals else None
    promised = totals.mean_alpha if totals and totals.mean_alpha is not None else alpha
    effective = totals.effective if totals else 0.0
    interval = interval_of(rate, effective)
    return Satisfaction(
        requests=requests,
        answered=answered,
        answered_share=share(answered, requests),
        effective=effective,
        promised=promised,
        rate=rate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        verdict=verdict(interval, promised),
        is_thin=is_thin(interval, effective),
        evidence=evidence(interval, answered, requests, effective),
        kept_within_points=points_below(interval, promised),
    )


def interval_of(rate: float | None, count: float) -> Interval | None:
    """Around a mean that the database made; None of no verdicts."""
    return None if rate is None else wilson(min(max(rate, 0.0), 1.0), count)


def evidence(interval: Interval | None, answered: int, requests: int, effective: float) -> str:
    """How much the figures rest on, in words."""
    if requests == 0:
        return "no requests yet"
    counted = f"{answered} of {requests} requests with a verdict"
    if round(effective) < answered:
        counted += f", worth {effective:.0f}"
    if not is_thin(interval, effective):
        return counted
    width = f", interval {100 * interval.width:.0f} points wide" if interval else ""
    return f"not enough evidence: {counted}{width}"


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
    """None of nothing."""
    return part / whole if whole else None
