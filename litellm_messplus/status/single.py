"""The best single model that would have met alpha: an estimate from the calls that were judged."""

from collections.abc import Sequence

from litellm_messplus.status.interval import is_thin
from litellm_messplus.status.queries import Calls, Totals
from litellm_messplus.status.report import BestSingle, Finding
from litellm_messplus.status.windows import interval_of, share

ENOUGH_LABELLED = 30
"""Verdicts below which a model is not considered: three happy users make no model good."""


def best_single(
    calls: Sequence[Calls], candidates: Sequence[str], totals: Totals | None, alpha: float
) -> BestSingle:
    """The cheapest model whose mean verdict is at least ``alpha``, and what it would have cost.

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
        return BestSingle(Finding.UNKNOWN, _unknown(unjudged), unjudged)
    return BestSingle(
        Finding.NONE, f"estimate: no single model meets alpha {alpha:g}", unjudged,
        labelled=min(each.labelled for each in judged), is_thin=False,
    )  # fmt: skip


def _found(
    best: Calls, price: float, totals: Totals | None, unjudged: tuple[str, ...]
) -> BestSingle:
    requests = totals.priced if totals else 0
    cost = price * requests
    saved = cost - totals.priced_cost if totals and requests else None
    return BestSingle(
        finding=Finding.FOUND,
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
