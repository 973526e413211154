"""Sums of requests into the status of a window: what was kept, at what cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import (
    Interval,
    Standing,
    effective,
    is_thin,
    standing,
)
from litellm_messplus.figures.tally import Tally, interval_of, share
from litellm_messplus.status.queries import Key
from litellm_messplus.status.report import (
    Answers,
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
from litellm_messplus.store.sum_tables import call_sums


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


# The best single model that would have met alpha: an estimate from the calls that were judged.


@dataclass(frozen=True, slots=True)
class Calls:
    """The successful calls of one candidate, in any role."""

    candidate: str
    labelled: int
    effective: float
    rate: float | None
    mean_cost: float | None


async def calls_of_candidates(connection: AsyncConnection) -> dict[Key, list[Calls]]:
    """Sum up every candidate's calls, the served and the exploration calls together; what LiteLLM's
    cache repeated was no call."""
    of = call_sums.c
    each = (of.zoo, of.service_level, of.candidate)
    sums = ("judged", "weight", "weight_squared", "weighted_satisfaction", "priced", "priced_cost")
    query = (
        select(*each, *(func.sum(of[name]).label(name) for name in sums))
        .where(of.own > 0)
        .group_by(*each)
        .order_by(of.candidate)
    )
    found: dict[Key, list[Calls]] = {}
    for row in await connection.execute(query):
        calls = Calls(
            row.candidate,
            row.judged,
            effective(row.weight, row.weight_squared),
            share(row.weighted_satisfaction, row.weight),
            share(row.priced_cost, row.priced),
        )
        found.setdefault((row.zoo, row.service_level), []).append(calls)
    return found


ENOUGH_LABELLED = 30
"""Verdicts below which a model is not considered: three happy users make no model good."""


def best_single(
    calls: Sequence[Calls], candidates: Sequence[str], totals: Tally | None, alpha: float
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
    best: Calls, price: float, totals: Tally | None, unjudged: tuple[str, ...]
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
