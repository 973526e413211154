"""Policy `adaptive`: hold alpha at the lowest cost, with alpha as the only setting.

Each request is decided alone: of the eligible candidates, the one with the least
cost - price * satisfaction serves. If predictions from the prompt have beaten the means, the price
comes from the plan over recent prompts; else from the slope of the cost hull and the backlog.
Eligibility depends on how certain it is that a cheaper candidate can hold alpha.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from litellm_messplus.core import trying
from litellm_messplus.core.decision import Decision, Reason, Situation
from litellm_messplus.core.plan import EVIDENCE, Owed, plan
from litellm_messplus.core.price import (
    best_value,
    eligible,
    feedforward,
    horizon,
    lower_hull,
    reserve,
    with_feedback,
)
from litellm_messplus.core.second_answer import gains_of
from litellm_messplus.core.trying import Knowledge

BLIND = 64
"""Requests served without any label before the largest model takes over, until a label comes:
labels that came 500 requests late left a debt of 200 that could not be repaid."""

PLANNED_HOPE = 0.5
"""Share of the optimism about a rarely labelled model that counts in its score under a plan. At 0,
a model that begins badly is never tried again, and alpha is missed."""


@dataclass(frozen=True, slots=True)
class View:
    """The zoo as one service level sees it: indices of candidates by rising cost."""

    by_cost: tuple[int, ...]
    typical_cost: tuple[float, ...]
    optimistic: tuple[float, ...]
    is_within_reach: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a decision: the models that may serve, the price of satisfaction, and whether
    both come from the plan."""

    models: tuple[int, ...]
    price: float
    is_planned: bool

    @property
    def hope(self) -> float:
        """The share of each model's optimism that counts in its score."""
        return PLANNED_HOPE if self.is_planned else 1.0


@dataclass(frozen=True, slots=True)
class Read:
    """Worth of reading the answer of each model on one request, in the unit of cost, and the
    satisfaction that it adds; whether answers may be replaced at all."""

    value: list[float]
    rate: list[float]
    is_possible: bool


@dataclass(frozen=True, slots=True)
class Pick:
    """The choice for a request: the model that serves, the models called ``unseen`` in addition,
    the ``chance`` of a probe, and the probability with which the chosen one was to serve."""

    chosen: int
    unseen: tuple[int, ...]
    is_probe: bool
    chance: float
    propensity: float


def decide(situation: Situation, known: Knowledge, answered_share: float) -> Decision:
    """Rank the healthy candidates for one request.

    The backlog counts answered requests; if only a share of requests is answered, the horizon over
    which it is to be repaid shrinks by that share. If it is known whether this request's answers
    will be labelled, that alone decides on unseen calls, not the labelled share of earlier ones.
    """
    if situation.is_labelled is not None:
        known = replace(known, unseen_labelled=1.0)
    view = _view(situation, known, answered_share)
    owed = situation.queue + situation.in_flight
    backlog = owed + _reserve(view, known, situation)
    terms = _terms(situation, known, view, backlog, answered_share)
    hope = terms.hope
    scores = [
        estimate.cost - terms.price * (estimate.satisfaction + hope * (optimistic - rate))
        for estimate, optimistic, rate in zip(
            situation.estimates, view.optimistic, known.rate, strict=True
        )
    ]
    read = _read(situation, terms)
    scores = [score - value for score, value in zip(scores, read.value, strict=True)]
    is_blind = known.is_blank and situation.t > BLIND
    best = _largest(situation) if is_blind else min(terms.models, key=scores.__getitem__)
    pick = _pick(situation, known, view, terms, best, owed, is_blind=is_blind)
    ranking = _ranking(pick.chosen, terms.models, view.by_cost, scores)
    return Decision(
        ranking=tuple([situation.estimates[place].candidate for place in ranking]),
        explored=tuple([situation.estimates[place].candidate for place in pick.unseen]),
        is_exploration=pick.is_probe or bool(pick.unseen),
        exploration_probability=pick.chance,
        expected_satisfaction=situation.estimates[pick.chosen].satisfaction
        + read.rate[pick.chosen],
        propensity=pick.propensity,
        reason=_reason(pick, is_blind, view.is_within_reach, backlog),
        price=terms.price,
        is_within_reach=view.is_within_reach,
        reads=read.is_possible and pick.chosen == best,
    )


def _read(situation: Situation, terms: Terms) -> Read:
    """Compute what reading each model's answer is worth on this request: nothing if it may not be
    replaced, or if prompts are not read either."""
    estimates, spread = situation.estimates, situation.spread
    if spread is None or not terms.is_planned or terms.price <= 0.0 or not spread.scores.any():
        return Read([0.0] * len(estimates), [0.0] * len(estimates), False)
    chances, costs = [e.satisfaction for e in estimates], [e.cost for e in estimates]
    found = gains_of(chances, costs, spread, terms.price)
    return Read(found.value[0, 0].tolist(), found.rate[0, 0].tolist(), True)


def _terms(
    situation: Situation, known: Knowledge, view: View, backlog: float, answered_share: float
) -> Terms:
    """Set the terms: by the plan over recent prompts if predictions from the prompt have beaten the
    means, else by the means."""
    repayment = horizon(situation.t, answered_share)
    allowed = eligible(view.by_cost, view.optimistic, situation.alpha, backlog, repayment)
    evidence = known.evidence
    if situation.spread is not None:
        evidence = max(evidence, float(situation.spread.evidence[0]))
    if situation.outlook is not None and evidence >= EVIDENCE:
        aimed = Owed(backlog, situation.t, known.overrated)
        planned = plan(situation.outlook, view.by_cost, allowed, situation.alpha, aimed)
        return Terms(planned.models, _bounded(planned.price, view), True)
    price = _price(view, allowed, situation.alpha, backlog)
    return Terms(allowed, _bounded(price, view), False)


def _pick(
    situation: Situation,
    known: Knowledge,
    view: View,
    terms: Terms,
    best: int,
    owed: float,
    *,
    is_blind: bool,
) -> Pick:
    """Choose the best model, unless a probe is due. A probe that would cost the user much is made
    as an unseen call."""
    chance, costs = trying.probe_probability(situation.t), view.typical_cost
    tried = trying.to_probe(terms.models, best, costs, known, situation.alpha)
    trial = (
        trying.trial(known, view.optimistic, situation.alpha, owed) if terms.is_planned else None
    )
    if trial is not None:
        chance, tried = max(chance, trying.TRIAL), (trial,)
    served = [m for m in tried if not _is_better_unseen(m, best, situation, known, terms)]
    if situation.exploration_draw < chance:
        model = tried[int(situation.choice_draw * len(tried))]
        chosen, unseen = (model, ()) if model in served else (best, (model,))
        propensity = _propensity(chosen, best, tried, served, chance)
        if unseen and situation.is_labelled is False:  # it would teach nothing
            return Pick(best, (), False, chance, propensity)
        return Pick(chosen, unseen, True, chance, propensity)
    shadows = set[int]()
    if not is_blind and situation.is_labelled is not False:
        shadows.update(trying.to_shadow(terms.models, best, costs, known, situation.alpha))
        if terms.is_planned:
            shadows.update(trying.panel(best, costs, known, situation))
    by_cost = tuple(sorted(shadows, key=view.by_cost.index))
    return Pick(best, by_cost, False, chance, _propensity(best, best, tried, served, chance))


def _is_better_unseen(
    model: int, best: int, situation: Situation, known: Knowledge, terms: Terms
) -> bool:
    probed, chosen = situation.estimates[model], situation.estimates[best]
    lost = terms.price * (chosen.satisfaction - probed.satisfaction)
    regret = lost - (chosen.cost - probed.cost)
    return trying.is_better_unseen(regret, probed.cost, known.unseen_labelled)


def _propensity(
    chosen: int, best: int, tried: Sequence[int], served: Sequence[int], chance: float
) -> float:
    """Compute the probability that ``chosen`` was to serve, as a probe or as the best model."""
    by_probe = chance / len(tried) if chosen in served else 0.0
    if chosen != best:
        return by_probe
    unseen = len([model for model in tried if model not in served and model != best])
    return 1.0 - chance + by_probe + chance * unseen / len(tried)


def _reserve(view: View, known: Knowledge, situation: Situation) -> float:
    """Compute the surplus to aim at, from the cheapest candidate that holds alpha, or the best."""
    holds = [place for place in view.by_cost if known.rate[place] >= situation.alpha]
    holder = holds[0] if holds else max(view.by_cost, key=known.rate.__getitem__)
    return reserve(known.rate[holder], known.deviation[holder], situation.alpha, situation.t)


def _view(situation: Situation, known: Knowledge, answered_share: float) -> View:
    """Judge every candidate at its optimistic rate. Hope for one that costs less than the one
    believed best is at the users' expense until labels come, so only the labelled share of it
    counts: else, with a fifth labelled, RouterBench ends 9.0 instead of 3.5 points below alpha."""
    typical = tuple([estimate.typical_cost for estimate in situation.estimates])
    terms = list(zip(known.rate, known.optimism, known.deviation, typical, strict=True))
    _, of_best = min((-rate, cost) for rate, _, _, cost in terms)
    optimistic = tuple(
        [
            min(rate + (answered_share if cost < of_best else 1.0) * extra * deviation, 1.0)
            for rate, extra, deviation, cost in terms
        ]
    )
    most = max([rate + extra * deviation for rate, extra, deviation, _ in terms])
    # At equal cost the better one comes first: the others are then never worth calling.
    by_cost = sorted(range(len(typical)), key=lambda place: (typical[place], -optimistic[place]))
    return View(tuple(by_cost), typical, optimistic, most >= situation.alpha)


def _price(view: View, allowed: Sequence[int], alpha: float, backlog: float) -> float:
    hull = lower_hull(allowed, view.typical_cost, view.optimistic)
    slope = feedforward(hull, view.typical_cost, view.optimistic, alpha)
    return with_feedback(slope, backlog)


def _bounded(price: float, view: View) -> float:
    """Bound the price: if no candidate holds alpha, no price is high enough, and the price of best
    value is the limit."""
    if view.is_within_reach:
        return price
    return min(price, best_value(view.typical_cost, view.optimistic))


def _ranking(
    chosen: int, allowed: Sequence[int], usable: Sequence[int], scores: Sequence[float]
) -> list[int]:
    """Rank the choice, then the other eligible models by score, then the rest, for retries."""
    others = sorted([m for m in allowed if m != chosen], key=scores.__getitem__)
    rest = sorted([m for m in usable if m != chosen and m not in allowed], key=scores.__getitem__)
    return [chosen, *others, *rest]


def _largest(situation: Situation) -> int:
    """Return the largest model; the most expensive if the largest is not healthy."""
    estimates = situation.estimates
    return max(
        range(len(estimates)),
        key=lambda m: (estimates[m].candidate == situation.largest, estimates[m].typical_cost),
    )


def _reason(pick: Pick, is_blind: bool, is_within_reach: bool, backlog: float) -> Reason:
    if pick.is_probe:
        return Reason.UNSEEN_PROBE if pick.unseen else Reason.PROBE
    if is_blind:
        return Reason.UNLABELLED
    if not is_within_reach:
        return Reason.OUT_OF_REACH
    return Reason.BEHIND if backlog > 0.0 else Reason.AHEAD
