"""Policy `adaptive`: hold alpha at the lowest cost, with alpha as the only setting.

Each request is decided alone: among the eligible candidates, the one with the least
cost - price * satisfaction. The price comes from the backlog; who is eligible, from how sure it is
that a cheaper candidate can hold alpha.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from litellm_messplus.routing import probe, shadow
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.routing.eligibility import eligible, horizon
from litellm_messplus.routing.exploration import every_candidate
from litellm_messplus.routing.knowledge import Knowledge
from litellm_messplus.routing.price import best_value, feedforward, lower_hull, with_feedback
from litellm_messplus.routing.reserve import reserve

BLIND = 64
"""Requests that are served without a single label. From there on until one comes, the largest
serves: labels that come 500 requests late found a debt of 200 that nothing could repay."""


@dataclass(frozen=True, slots=True)
class View:
    """The zoo as one service level sees it now: indices of candidates by rising cost."""

    by_cost: tuple[int, ...]
    typical_cost: tuple[float, ...]
    optimistic: tuple[float, ...]
    is_within_reach: bool


def decide(situation: Situation, known: Knowledge, answered_share: float) -> Decision:
    """Rank the healthy candidates for one request.

    The backlog counts answered requests; where only a share of them is answered, the horizon over
    which it is to be repaid holds that much fewer.
    """
    view = _view(situation, known)
    backlog = situation.queue + situation.in_flight + _reserve(view, known, situation)
    repayment = horizon(situation.t, answered_share)
    allowed = eligible(view.by_cost, view.optimistic, situation.alpha, backlog, repayment)
    price = _price(view, allowed, situation.alpha, backlog)
    scores = [
        estimate.cost - price * (estimate.satisfaction + optimistic - rate)
        for estimate, optimistic, rate in zip(
            situation.estimates, view.optimistic, known.rate, strict=True
        )
    ]
    if situation.t == 1 and known.is_blank:
        return every_candidate(
            situation, 1.0, "first request: every candidate is called", price=price
        )
    is_blind = known.is_blank and situation.t > BLIND
    best = _largest(situation) if is_blind else min(allowed, key=scores.__getitem__)
    chance = probe.probability(situation.t)
    tried = probe.candidates(allowed, best, view.typical_cost, known, situation.alpha)
    is_probe = situation.exploration_draw < chance
    chosen = tried[int(situation.choice_draw * len(tried))] if is_probe else best
    shadows: tuple[int, ...] = ()
    if not (is_probe or is_blind):
        shadows = shadow.candidates(allowed, chosen, view.typical_cost, known, situation.alpha)
    ranking = _ranking(chosen, allowed, view.by_cost, scores)
    return Decision(
        ranking=tuple(situation.estimates[place].candidate for place in ranking),
        explored=tuple(situation.estimates[place].candidate for place in shadows),
        is_exploration=is_probe or bool(shadows),
        exploration_probability=chance,
        expected_satisfaction=situation.estimates[chosen].satisfaction,
        propensity=(chance / len(tried) if chosen in tried else 0.0)
        + (1.0 - chance if chosen == best else 0.0),
        reason=_reason(is_probe, is_blind, view.is_within_reach, backlog),
        price=price,
        is_within_reach=view.is_within_reach,
    )


def _reserve(view: View, known: Knowledge, situation: Situation) -> float:
    """The surplus to aim at, by the cheapest candidate that holds alpha (else the best)."""
    best = max(view.by_cost, key=known.rate.__getitem__)
    holds = (place for place in view.by_cost if known.rate[place] >= situation.alpha)
    holder = next(holds, best)
    return reserve(known.rate[holder], known.deviation[holder], situation.alpha, situation.t)


def _view(situation: Situation, known: Knowledge) -> View:
    optimistic = tuple(
        min(rate + extra * deviation, 1.0)
        for rate, extra, deviation in zip(known.rate, known.optimism, known.deviation, strict=True)
    )
    typical = tuple(estimate.typical_cost for estimate in situation.estimates)
    # At the same cost the better one comes first: the others are then never worth calling.
    by_cost = sorted(range(len(typical)), key=lambda place: (typical[place], -optimistic[place]))
    return View(tuple(by_cost), typical, optimistic, max(optimistic) >= situation.alpha)


def _price(view: View, allowed: Sequence[int], alpha: float, backlog: float) -> float:
    hull = lower_hull(allowed, view.typical_cost, view.optimistic)
    slope = feedforward(hull, view.typical_cost, view.optimistic, alpha)
    price = with_feedback(slope, backlog)
    if view.is_within_reach:
        return price
    return min(price, best_value(view.typical_cost, view.optimistic))


def _ranking(
    chosen: int, allowed: Sequence[int], usable: Sequence[int], scores: Sequence[float]
) -> list[int]:
    """The choice, then the other eligible ones by score, then the rest: for retries."""
    others = sorted((m for m in allowed if m != chosen), key=scores.__getitem__)
    rest = sorted((m for m in usable if m != chosen and m not in allowed), key=scores.__getitem__)
    return [chosen, *others, *rest]


def _largest(situation: Situation) -> int:
    """The one that stands for quality; the dearest where it is not healthy."""
    estimates = situation.estimates
    return max(
        range(len(estimates)),
        key=lambda m: (estimates[m].candidate == situation.largest, estimates[m].typical_cost),
    )


def _reason(is_probe: bool, is_blind: bool, is_within_reach: bool, backlog: float) -> str:
    if is_probe:
        return "probe"
    if is_blind:
        return "no label has come yet: the largest"
    if not is_within_reach:
        return "no candidate is expected to hold alpha: best value"
    return "behind alpha" if backlog > 0.0 else "ahead of alpha"
