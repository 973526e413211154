"""Sums of requests into the status of a window: what was kept, at what cost."""

from litellm_messplus.figures.interval import Interval, Standing, is_thin, standing
from litellm_messplus.figures.tally import Tally, share
from litellm_messplus.status.report import (
    Answers,
    Cost,
    Exploration,
    Labels,
    Overhead,
    Satisfaction,
    Savings,
    WindowStatus,
)


def window_status(
    found: Tally | None, alpha: float, labels: Labels, *, is_failing: bool = False
) -> WindowStatus:
    """Describe the requests that were added up, None for no requests; ``alpha`` is of now, and so
    is ``is_failing``: whether requests of the zoo get no answer."""
    tally = found or Tally()
    return WindowStatus(
        answers=_answers(tally),
        satisfaction=_satisfaction(tally, alpha, is_failing),
        labels=labels,
        cost=_cost(tally),
        exploration=_exploration(tally),
        savings=_savings(tally),
        overhead=_overhead(tally),
    )


def _answers(tally: Tally) -> Answers:
    return Answers(
        requests=tally.requests,
        answered=tally.succeeded,
        answered_share=tally.share_answered,
        failed=tally.failed,
        failed_upstream=tally.failed_upstream,
        failed_no_deployment=tally.failed_no_deployment,
        failed_deadline=tally.failed_deadline,
        failed_client_gone=tally.failed_client_gone,
        failed_refused=tally.failed_refused,
    )


def _satisfaction(tally: Tally, alpha: float, is_failing: bool) -> Satisfaction:
    promised = tally.promised if tally.promised is not None and tally.judged else alpha
    effective, interval = tally.effective, tally.interval
    return Satisfaction(
        requests=tally.counted,
        judged=tally.judged,
        judged_share=share(tally.judged, tally.counted),
        effective=effective,
        promised=promised,
        rate=tally.rate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        verdict=Standing.FAILING if is_failing else standing(interval, promised),
        is_thin=is_thin(interval, effective),
        evidence=evidence(interval, tally.judged, tally.counted, effective, tally.unit),
        unit=tally.unit,
    )


def evidence(
    interval: Interval | None, judged: int, counted: int, effective: float, unit: str
) -> str:
    """Say in words how much the figures rest on."""
    if counted == 0:
        return f"no {unit} yet"
    told = f"{judged} of {counted} {unit} with a verdict"
    if round(effective) < judged:
        told += f", worth {effective:.0f}"
    if not is_thin(interval, effective):
        return told
    width = f", interval {100 * interval.width:.0f} points wide" if interval else ""
    return f"not enough evidence: {told}{width}"


def _cost(tally: Tally) -> Cost:
    total = tally.cost if tally.priced or tally.cost > 0.0 else None
    return Cost(total, tally.cost_per_request, tally.unstated)


def _exploration(tally: Tally) -> Exploration:
    return Exploration(
        requests=tally.explorations,
        share=share(tally.explorations, tally.requests),
        cost=tally.exploration_cost,
        cost_share=share(tally.exploration_cost, tally.cost),
    )


def _savings(tally: Tally) -> Savings | None:
    if tally.compared == 0:
        return None
    return Savings(
        requests=tally.compared,
        cost_largest=tally.compared_cost_largest,
        saved=tally.saved,
        saved_share=tally.saved_share,
    )


def _overhead(tally: Tally) -> Overhead | None:
    """Return what predicting and deciding took beside the calls themselves, on average."""
    timed = tally.timed
    if timed == 0:
        return None
    predicting, call = tally.predicting_seconds / timed, tally.call_seconds / timed
    # Both are measured by one clock, but rounded.
    deciding = max(tally.deciding_seconds / timed, 0.0)
    whole = predicting + deciding + call or 1.0
    return Overhead(
        timed, tally.late, predicting, deciding, call,
        predicting / whole, deciding / whole, call / whole, share(tally.joules, tally.metered),
    )  # fmt: skip
