"""Trials of models: what is known of each, which one is probed, and which are called unseen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from litellm_messplus.core.decision import Decision, Estimate, Reason, Situation

# The evidence of the labels: all that `adaptive` knows in addition to the request itself.

LEAST_LABELLED = 0.1
"""Share of recent unseen calls that must have been labelled; below it, none is made."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The knowledge of each healthy candidate, in the order of the situation's estimates.

    ``rate`` is the mean satisfaction, ``deviation`` its standard deviation, and ``optimism`` the
    number of deviations that may be added. ``is_blank`` before the first label. ``unseen_labelled``
    is the share of recent unseen calls that got a label; ``evidence`` is by how many nats
    predictions from the prompt have beaten the means; ``overrated`` by how much the predictions for
    the service level's served answers exceeded their labels lately.
    """

    rate: Sequence[float]
    deviation: Sequence[float]
    optimism: Sequence[float]
    is_blank: bool
    unseen_labelled: float = 1.0
    evidence: float = 0.0
    overrated: float = 0.0


# Probes: occasionally a cheaper model that may hold alpha is tried instead of the choice.
#
# Why it exists: a model that is never called is never learned about; and off-policy evaluation
# needs the logged probability of every choice. The probability falls with the fourth root of the
# requests, as in the paper; but one model is called, not all, and if possible one that could lower
# the cost. If the probe would cost the user much, it is called in addition to the choice, unseen:
# that is, if the user's expected loss, at the price of satisfaction, exceeds the cost of one more
# call, and unseen calls get labels. With every probe served (10 seeds): zeroeval_mix 1.50 instead
# of 1.27 times the hindsight mix, llmdrift 0.93 instead of 0.87, alpaca 1.04 instead of 0.96. Left
# out (6 seeds): not shown to matter (0.440 instead of 0.429 MJ, d better between two models); kept
# for the logged probabilities and for models that improve while they are not called.

RATE = 0.2
PLAUSIBLE_DEVIATIONS = 3.0


TRIAL = 0.125
"""Share of requests that are trials while a trial is due."""
STANDING = 8.0
"""Requests owed from which on a debt makes a trial due."""
UNSURE, BEYOND_DOUBT = 0.05, 0.02
"""Standard deviations of a rate down to which a model is tried: after some 70 labels; and some 400
where no model may hold alpha any more, since a plan's labels are of the prompts that it chose."""


def trial(known: Knowledge, optimistic: Sequence[float], alpha: float, owed: float) -> int | None:
    """Choose the model to try if there is a debt that no known rate can repay; else None.

    It is the least known of those that may hold alpha, whatever it costs; if none may, of those
    that may be the best. Only under a plan: there a few early misses, on prompts that no model
    answers, exclude a model for good, since it is called on no others (one run in 20 of llmdrift
    ended 5.9 points below alpha that way, and another one 5.0 points while 70 labels were enough to
    give up). With the means alone, trials cost more than they gained: routerbench_winogrande 1.24
    instead of 1.13 times the mix.
    """
    if owed < STANDING or max(known.rate) >= alpha:
        return None
    known_well = UNSURE
    may = [model for model, best in enumerate(optimistic) if best >= alpha]
    if not may:
        known_well = BEYOND_DOUBT
        free = [0.0] * len(known.rate)
        may = [model for model in range(len(free)) if not _is_beaten(model, free, known)]
    model = max(may, key=known.deviation.__getitem__)
    return model if known.deviation[model] > known_well else None


def probe_probability(requests: int) -> float:
    return min(1.0, RATE / math.sqrt(math.sqrt(max(requests, 1))))


def to_probe(
    eligible: Sequence[int],
    choice: int,
    cost: Sequence[float],
    known: Knowledge,
    alpha: float,
) -> tuple[int, ...]:
    """Return the cheaper eligible models that may plausibly hold alpha; all eligible models if
    there are none."""
    plausible = [
        model
        for model in eligible
        if cost[model] < cost[choice]
        and known.rate[model] + PLAUSIBLE_DEVIATIONS * known.deviation[model] >= alpha
    ]
    return tuple(plausible or eligible)


def is_better_unseen(regret: float, cost: float, labelled: float) -> bool:
    """Decide whether a probe is made as an unseen call: ``regret`` is the user's expected loss from
    serving it, at the price of satisfaction; ``labelled`` the share of recent unseen calls that got
    a label."""
    return labelled >= LEAST_LABELLED and labelled * regret > cost


# Shadow calls: cheaper candidates that may hold alpha are called unseen next to an expensive one.
#
# Why it exists: a few early misses make a cheaper candidate look unable to hold alpha, and an
# expensive one serves instead. Trying it on the user again would cost satisfaction; an unseen call
# costs only its own small price, and its label teaches as any other. A shadow call is made if it
# pays: if what the candidate would save if it held alpha, times the probability that it does, over
# the ``WORTH`` requests by which one more label is taken to speed the verdict up, exceeds its
# price. So an expensive server has all its doubtful rivals tested at once, a model known to be too
# weak costs nothing, and there is no budget to set.
#
# All that pay are called, not only the most promising one: that one is often just below alpha, well
# known and never decided, while the one that had bad luck waits.
#
# Unseen calls teach only if they get labels: ``unseen_labelled`` is their recent share. Below
# ``LEAST_LABELLED`` none is made.
#
# Left out (20 seeds): 0.428 instead of 0.419 MJ on the five shared recordings, 2.16 instead of 1.92
# times the hindsight mix on three of them in turn; with eleven models, at alpha 0.70, 1.45 instead
# of 1.26 times it (40 seeds), and 20 % instead of 10 % of the runs above 1.5.

WORTH = 5.0


def to_shadow(
    eligible: Sequence[int],
    choice: int,
    cost: Sequence[float],
    known: Knowledge,
    alpha: float,
) -> tuple[int, ...]:
    """Return the eligible models cheaper than the choice whose expected saving exceeds their
    price."""
    if known.unseen_labelled < LEAST_LABELLED:
        return ()
    return tuple(
        model
        for model in eligible
        if cost[model] < cost[choice]
        and cost[model]
        < known.unseen_labelled
        * WORTH
        * (cost[choice] - cost[model])
        * chance_to_hold(alpha, known.rate[model], known.deviation[model])
    )


def chance_to_hold(alpha: float, rate: float, deviation: float) -> float:
    """Compute the probability, by the normal law, that the true rate is at least alpha."""
    return 0.5 * math.erfc((alpha - rate) / (math.sqrt(2.0) * max(deviation, 1e-6)))


# The panel: cheaper candidates answer unseen now and then, whatever their chance to hold alpha.
#
# Why it exists: a plan chooses by the prompt, so the labels of each model are of prompts on which
# it looked best, and what is believed of it on all others is never tested. Each candidate of the
# panel is called with the probability at which its calls cost, in the mean, a fixed share of what
# is spent on the requests that serve; so a cheap one answers often, and all of it is bounded. The
# draw goes by the request alone, so the labels are of all prompts that this choice serves. While a
# debt stands, the middle of the zoo may have to serve, and is tested as if it did.
#
# A candidate leaves when it is known well, or a cheaper one is surely better. Only under a plan: on
# the five single benchmarks, where prompts predict little, the panel costs 1 % and gains nothing.
#
# Left out (8 seeds, what is short at the mix's slope): zeroeval_mix 1.39 instead of 1.28 times the
# mix, ulab 0.67 instead of 0.64; and the beliefs of tiny are out by more than 2.5 deviations twice
# as often. With half the share 0.950 instead of 0.905 in the geometric mean of the two.

PANEL_SHARE, PANEL_START = 0.02, 8.0
"""Share of what is spent that each candidate's calls cost in the long run, and how many requests'
worth of it early on, divided by the requests."""
PANEL_YOUNG = 40.0
"""Requests added to those so far, so that the first ones do not call everything."""
KNOWN_WELL = 0.02
"""Standard deviation of a rate from which on it is known well: after some 500 labels."""
SURELY = 2.5
"""Standard deviations between which and the rate a true rate lies surely. At 1.5, candidates leave
that are better than they look: 0.921 instead of 0.902 in the mean of the two, at 0.75 1.001."""


def panel(
    choice: int,
    cost: Sequence[float],
    known: Knowledge,
    situation: Situation,
) -> tuple[int, ...]:
    """Draw which candidates answer in addition to the choice; ``cost`` are their usual costs."""
    if known.unseen_labelled < LEAST_LABELLED:
        return ()
    is_owed = situation.queue + situation.in_flight > 0.0
    spent = max(cost[choice], median(cost)) if is_owed else cost[choice]
    early = PANEL_START / (situation.t + PANEL_YOUNG)
    earned = known.unseen_labelled * max(PANEL_SHARE, early) * spent
    return tuple(
        model
        for model, now in enumerate(situation.estimates)
        if model != choice
        and cost[model] <= spent
        and situation.choice_draw * now.cost < earned
        and known.deviation[model] > KNOWN_WELL
        and not _is_beaten(model, cost, known)
    )


def _is_beaten(model: int, cost: Sequence[float], known: Knowledge) -> bool:
    """Return whether a candidate that costs no more is surely better."""
    most = known.rate[model] + SURELY * known.deviation[model]
    return any(
        each <= cost[model] and rate - SURELY * deviation > most
        for each, rate, deviation in zip(cost, known.rate, known.deviation, strict=True)
    )


# Newcomers: models added while a zoo serves, introduced without risking the promise.
#
# Why it exists: nothing is known of a new model, so it may hold alpha, and if it is the cheapest it
# would serve every request until the first labels come. So a newcomer is not a candidate of the
# usual choice. It is tried on one request in twenty, unseen if unseen calls get labels, until its
# labels show that it holds alpha, or that it does not, or are many. From there on the policy can
# handle it.

SHARE = 0.05
"""Share of requests that try newcomers, however many there are: one at a time, cheapest first."""
FEWEST = 5
"""Labelled calls before a verdict: until then its rate is that of the other models."""
ENOUGH = 50
"""Labelled calls from which on a model is no newcomer, whatever the labels show."""
BEST = 0.5
"""Least propensity of the best choice; that of a probe of another candidate is below it."""
SURE = 1.5
"""Standard deviations by which a newcomer's rate must exceed alpha to hold it. At 2, one that
satisfies 95 % against an alpha of 80 % takes 12 labels instead of 8."""
DEBT = 1.0
"""Requests owed from which on it is a debt: every other request, a zoo that just holds alpha owes
less."""


def is_settled(labelled: int, alpha: float, rate: float, deviation: float, optimism: float) -> bool:
    """Return whether ``labelled`` calls settle that it holds alpha, or that it does not even at the
    optimistic rate."""
    if labelled < FEWEST:
        return False
    return rate - SURE * deviation >= alpha or rate + optimism * deviation < alpha


def tried(decision: Decision, situation: Situation, unseen_labelled: float) -> Decision:
    """Try the cheapest newcomer if a trial is due; else rank the newcomers last, for retries.

    Nothing is tried if the answers will not be labelled, nor in debt, unless no other candidate can
    hold alpha: then a newcomer is the way out. The draw is the one that decides on probes: the two
    use its opposite ends.
    """
    ranked = sorted(situation.newcomers, key=lambda each: each.typical_cost)
    last = tuple(each.candidate for each in ranked)
    decision = replace(decision, ranking=(*decision.ranking, *last))
    owed = situation.queue + situation.in_flight
    if (owed >= DEBT and decision.is_within_reach) or situation.is_labelled is False:
        return decision
    is_due = situation.exploration_draw >= 1.0 - SHARE
    if situation.is_labelled or unseen_labelled >= LEAST_LABELLED:
        return _in_addition(decision, ranked[0]) if is_due else decision
    return _in_place(decision, ranked[0]) if is_due else _by_others(decision)


def _in_addition(decision: Decision, newcomer: Estimate) -> Decision:
    """Call the newcomer in addition, unseen by the user."""
    return replace(
        decision,
        explored=(*decision.explored, newcomer.candidate),
        is_exploration=True,
        reason=Reason.UNSEEN_NEWCOMER,
    )


def _in_place(decision: Decision, newcomer: Estimate) -> Decision:
    """Let the newcomer serve."""
    others = tuple(name for name in decision.ranking if name != newcomer.candidate)
    return replace(
        decision,
        ranking=(newcomer.candidate, *others),
        explored=(),
        is_exploration=True,
        exploration_probability=SHARE,
        expected_satisfaction=newcomer.satisfaction,
        propensity=SHARE,
        reason=Reason.NEWCOMER,
    )


def _by_others(decision: Decision) -> Decision:
    """Reduce the propensity of the best choice by the share of trials; that of a probe stays."""
    if decision.propensity < BEST:
        return decision
    return replace(decision, propensity=decision.propensity - SHARE)
