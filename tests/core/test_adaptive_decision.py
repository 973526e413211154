"""Policy `adaptive` decides for one request: purely, in any unit, whatever is healthy."""

from collections import defaultdict
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litellm_messplus.core.adaptive import BLIND, decide
from litellm_messplus.core.decision import Decision, Estimate, Reason, Situation
from litellm_messplus.core.plan import EVIDENCE, Outlook
from litellm_messplus.core.trying import LEAST_LABELLED, Knowledge
from tests.support.builders import LARGE, MEDIUM, SMALL, situation

NEVER = 1.0 - 2**-53
"""The highest draw: no probe but where a probe is certain."""
PROBES = {Reason.PROBE, Reason.UNSEEN_PROBE}
seeds = st.integers(0, 2**32)


def roll(seed: int, most: int = 5) -> tuple[Situation, Knowledge, float]:
    """Any situation, knowledge and share of answers; no two numbers alike, so that nothing ties. In
    half of them there is an outlook, and in half of these the plan sets the price."""
    random = Random(seed)
    names = [f"model {number}" for number in range(random.randint(1, most))]
    rate = [random.random() for _ in names]
    unit = 10.0 ** random.uniform(-6, 3)
    seen = Situation(
        t=random.choice([1, 2, 10, 300, 10_000]),
        alpha=random.uniform(0.02, 0.98),
        queue=random.uniform(-30, 30),
        in_flight=random.uniform(-2, 2),
        estimates=tuple(
            Estimate(
                name,
                cost=unit * random.uniform(0.1, 20),
                typical_cost=unit * random.uniform(0.1, 20),
                satisfaction=min(max(known + random.uniform(-0.2, 0.2), 0.01), 0.99),
            )
            for name, known in zip(names, rate, strict=True)
        ),
        largest=random.choice([*names, "down"]),
        exploration_draw=random.choice([random.random(), 0.01 * random.random()]),
        choice_draw=random.random(),
    )
    known = Knowledge(
        rate=rate,
        deviation=[random.uniform(0.01, 0.2) for _ in names],
        optimism=[random.uniform(0.0, 3.0) for _ in names],
        is_blank=random.random() < 0.2,
        unseen_labelled=random.random(),
        evidence=random.uniform(0.0, 2.0 * EVIDENCE),
    )
    if random.random() < 0.5:
        seen = foreseen(seen, seed)
    return seen, known, random.random()


def foreseen(seen: Situation, seed: int) -> Situation:
    """With an outlook on 40 prompts, in which each candidate has numbers of its own."""
    satisfaction, cost = [], []
    for estimate in seen.estimates:
        random = np.random.default_rng([seed, int(estimate.candidate.removeprefix("model "))])
        satisfaction.append(random.random(40))
        cost.append(estimate.typical_cost * random.uniform(0.3, 3.0, 40))
    hope = [0.05] * len(seen.estimates)
    outlook = Outlook(np.column_stack(satisfaction), np.column_stack(cost), hope)
    return replace(seen, outlook=outlook)


def scaled(seen: Situation, factor: float, seed: int) -> Situation:
    estimates = tuple(
        replace(e, cost=factor * e.cost, typical_cost=factor * e.typical_cost)
        for e in seen.estimates
    )
    other = replace(seen, estimates=estimates)
    return other if seen.outlook is None else foreseen(other, seed)


def sure(*rates: float) -> Knowledge:
    """Rates that many labels have made sure of."""
    return Knowledge(rates, (0.001,) * len(rates), (1.0,) * len(rates), is_blank=False)


@given(seeds)
def test_any_decision_is_one_about_the_healthy_candidates(seed: int) -> None:
    seen, known, answered = roll(seed)
    decision = decide(seen, known, answered)
    known_of = {estimate.candidate: estimate for estimate in seen.estimates}
    assert decision == decide(seen, known, answered)
    assert sorted(decision.ranking) == sorted(known_of)
    assert set(decision.explored) <= set(known_of) - {decision.chosen}
    assert decision.expected_satisfaction == known_of[decision.chosen].satisfaction
    assert 0.0 < decision.propensity <= 1.0 + 1e-12
    shadows = decide(replace(seen, exploration_draw=NEVER), known, answered)
    dearest = known_of[shadows.chosen].typical_cost
    if seen.queue + seen.in_flight > 0.0:  # the panel goes up to the middle of the zoo
        dearest = max(dearest, median(each.typical_cost for each in seen.estimates))
    assert all(known_of[name].typical_cost <= dearest for name in shadows.explored)


@given(seeds, st.integers(-10, 30))
@example(7, 0)  # two are called unseen
def test_neither_unit_nor_order_of_candidates_decides(seed: int, power: int) -> None:
    """Powers of two scale without rounding: all is equal but the price, which is in the unit."""
    seen, known, answered = roll(seed)
    plain = decide(seen, known, answered)
    assert plain.price is not None
    other = decide(scaled(seen, 2.0**power, seed), known, answered)
    expected = replace(plain, price=2.0**power * plain.price)
    if len(seen.estimates) == 1:  # the price is of nothing
        expected = replace(expected, price=other.price)
    assert other == expected
    order = list(range(len(seen.estimates)))
    Random(seed).shuffle(order)
    rate, deviation, optimism = (
        [column[place] for place in order]
        for column in (known.rate, known.deviation, known.optimism)
    )
    turned = replace(known, rate=rate, deviation=deviation, optimism=optimism)
    listed = replace(seen, estimates=tuple(seen.estimates[place] for place in order))
    listed = listed if seen.outlook is None else foreseen(listed, seed)
    assert decide(listed, turned, answered) == plain


@given(seeds)
def test_propensities_are_the_probabilities_of_the_choices(seed: int) -> None:
    """Over all draws: 60 of the probe's choice, which any number of up to 6 divides evenly."""
    seen, known, answered = roll(seed)

    def draw(exploration: float, choice: float) -> Decision:
        drawn = replace(seen, exploration_draw=exploration, choice_draw=choice)
        return decide(drawn, known, answered)

    plain = draw(NEVER, 0.0)
    chance = plain.exploration_probability
    chances = {plain.chosen: plain.propensity}
    probability = defaultdict(float, {plain.chosen: 0.0 if chance == 1.0 else 1.0 - chance})
    for number in range(60):
        probed = draw(0.0, (number + 0.5) / 60)
        assert probed.is_exploration
        assert probed.exploration_probability == chance
        probability[probed.chosen] += chance / 60
        assert chances.setdefault(probed.chosen, probed.propensity) == probed.propensity
    assert sum(chances.values()) == pytest.approx(1.0)
    assert chances == pytest.approx(dict(probability))
    below, at = draw(chance * 0.999, 0.0), draw(min(chance, NEVER), 0.0)
    assert below.reason in PROBES
    assert at.reason not in PROBES
    assert at.is_exploration == bool(at.explored)


@given(seeds, st.floats(-40, 40), st.floats(-40, 40))
def test_a_larger_backlog_never_satisfies_less(seed: int, one: float, other: float) -> None:
    """Where the prompt says nothing of its own: predictions are the rates, costs the typical."""
    seen, known, answered = roll(seed)
    estimates = tuple(
        replace(estimate, cost=estimate.typical_cost, satisfaction=rate)
        for estimate, rate in zip(seen.estimates, known.rate, strict=True)
    )
    seen = replace(seen, estimates=estimates, exploration_draw=NEVER, t=seen.t + 1)
    known = replace(known, evidence=0.0)

    costs = [estimate.cost for estimate in estimates]
    best = max(range(len(costs)), key=known.rate.__getitem__)

    def optimistic(queue: float) -> float:
        chosen = decide(replace(seen, queue=queue), known, answered).chosen
        place = [estimate.candidate for estimate in estimates].index(chosen)
        hope = known.optimism[place] * known.deviation[place]
        part = answered if costs[place] < costs[best] else 1.0
        return min(known.rate[place] + part * hope, 1.0)

    less, more = sorted((one, other))
    assert optimistic(less) <= optimistic(more)
    # What is in flight counts as what is owed, on grids, so that both sums are exact.
    queue, part = round(one * 8) / 8, round(other) / 8
    owed = replace(seen, queue=queue + part, in_flight=0.0)
    flying = replace(seen, queue=queue, in_flight=part)
    assert decide(owed, known, answered) == decide(flying, known, answered)


@pytest.mark.parametrize(
    ("alpha", "answered", "chosen"),
    [(0.75, 1.0, SMALL), (0.75, 0.2, MEDIUM), (0.83, 1.0, SMALL), (0.83, 0.2, LARGE)],
)
def test_few_labels_leave_little_hope(alpha: float, answered: float, chosen: str) -> None:
    """In a cheaper one than the one believed best; one that costs more is hoped for as ever."""
    seen = never((SMALL, 1, 0.7), (MEDIUM, 3, 0.8), (LARGE, 5, 0.79), alpha=alpha, t=1000)
    known = Knowledge((0.7, 0.8, 0.79), (0.1, 0.01, 0.1), (1.5,) * 3, is_blank=False)
    assert decide(seen, known, answered).chosen == chosen


@given(seeds)
def test_a_probe_is_unseen_where_the_user_would_lose_more(seed: int) -> None:
    """As far as unseen calls get labels: else it is served, or nothing would be learned."""
    seen, known, answered = roll(seed)
    plain = decide(replace(seen, exploration_draw=NEVER), known, answered)
    probed = decide(replace(seen, exploration_draw=0.0), known, answered)
    estimates = {estimate.candidate: estimate for estimate in seen.estimates}
    (tried,) = probed.explored or (probed.chosen,)
    best, probe = estimates[plain.chosen], estimates[tried]
    assert probed.price is not None
    lost = probed.price * (best.satisfaction - probe.satisfaction) - (best.cost - probe.cost)
    labelled = known.unseen_labelled
    is_unseen = labelled >= LEAST_LABELLED and labelled * lost > probe.cost
    assert bool(probed.explored) == is_unseen
    assert probed.chosen == (plain.chosen if is_unseen else tried)
    assert probed.reason is (Reason.UNSEEN_PROBE if is_unseen else Reason.PROBE)
    if is_unseen:  # an answer that will get no label teaches nothing
        seen = replace(seen, exploration_draw=0.0, is_labelled=False)
        assert decide(seen, known, answered).explored == ()


def test_the_plan_sets_the_price_where_reading_the_prompts_has_proved_itself() -> None:
    """Half of the prompts are easy for the small model: a satisfied one of the others costs 9."""
    easy = np.arange(40) < 20
    outlook = Outlook(
        np.column_stack([np.where(easy, 0.9, 0.1), np.full(40, 0.9)]),
        np.broadcast_to([1.0, 10.0], (40, 2)),
        (0.0, 0.0),
    )
    seen = situation((SMALL, 1, 0.5), (LARGE, 10, 0.9), exploration_draw=NEVER)
    known = replace(sure(0.5, 0.9), evidence=EVIDENCE)
    means, planned = decide(seen, known, 1.0), decide(replace(seen, outlook=outlook), known, 1.0)
    doubtful = replace(known, evidence=EVIDENCE - 0.1)
    assert means.price == pytest.approx(9.0 / 0.4, rel=0.1)
    assert planned.price == pytest.approx(9.0 / 0.8, rel=0.2)
    assert decide(replace(seen, outlook=outlook), doubtful, 1.0).price == means.price


def never(*estimates: tuple[str, float, float], **changed: Any) -> Situation:
    return situation(*estimates, **{"exploration_draw": NEVER, **changed})


ALIKE = ((SMALL, 1.0, 0.7), (MEDIUM, 3.0, 0.7), (LARGE, 5.0, 0.7))
FLAT = Outlook(
    np.broadcast_to([0.5, 0.52], (40, 2)), np.broadcast_to([1.0, 100.0], (40, 2)), (0.0, 0.0)
)
BLANK = replace(sure(0.7, 0.7, 0.7), is_blank=True)
DOUBTED = Knowledge((0.3, 0.6, 0.9), (0.05, 0.06, 0.05), (1.5,) * 3, is_blank=False)
UNLUCKY = never((SMALL, 1, 0.3), (MEDIUM, 5, 0.6), (LARGE, 50, 0.9), alpha=0.7, queue=1.0)
TWO = ((SMALL, 1, 0.5), (LARGE, 5, 0.9))


@pytest.mark.parametrize(
    ("seen", "known", "chosen", "explored"),
    [
        pytest.param(never(*ALIKE, t=1), BLANK, SMALL, (), id="the first request is as any other"),
        pytest.param(never(*ALIKE, t=BLIND), BLANK, SMALL, (), id="labels are still to come"),
        pytest.param(never(*ALIKE, t=BLIND + 1), BLANK, LARGE, (), id="they do not come"),
        pytest.param(never(*ALIKE, t=BLIND + 1), sure(0.7, 0.7, 0.7), SMALL, (), id="they did"),
        pytest.param(
            never(*ALIKE[:2], t=BLIND + 1, largest="down"),
            replace(sure(0.7, 0.7), is_blank=True),
            MEDIUM,
            (),
            id="they do not come and the largest is down",
        ),
        pytest.param(UNLUCKY, DOUBTED, LARGE, (MEDIUM,), id="who had bad luck answers unseen"),
        pytest.param(
            UNLUCKY, replace(DOUBTED, unseen_labelled=0.0), LARGE, (), id="no one labels it"
        ),
        pytest.param(replace(UNLUCKY, is_labelled=False), DOUBTED, LARGE, (), id="no one will"),
        pytest.param(UNLUCKY, sure(0.3, 0.6, 0.9), LARGE, (), id="it was no bad luck"),
        pytest.param(
            never((SMALL, 1, 0.3), (MEDIUM, 2, 0.9), (LARGE, 50, 0.95), alpha=0.7, queue=0.5),
            sure(0.3, 0.9, 0.95),
            MEDIUM,
            (),
            id="the cheapest that surely holds alpha",
        ),
        pytest.param(
            never(*TWO, alpha=0.7, queue=-25.0), sure(0.5, 0.9), SMALL, (), id="ahead of alpha"
        ),
        pytest.param(never(*TWO, alpha=0.7, queue=25.0), sure(0.5, 0.9), LARGE, (), id="behind it"),
    ],
)
def test_who_serves_and_who_answers_unseen(
    seen: Situation, known: Knowledge, chosen: str, explored: tuple[str, ...]
) -> None:
    decision = decide(seen, known, 1.0)
    assert (decision.chosen, decision.explored) == (chosen, explored)
    assert decision.is_exploration == bool(explored)
    assert (decision.reason is Reason.UNLABELLED) == (known.is_blank and seen.t > BLIND)


@pytest.mark.parametrize("outlook", [None, FLAT], ids=["by the means", "by the plan"])
def test_where_none_can_hold_alpha_no_price_is_paid_for_nothing(outlook: Outlook | None) -> None:
    seen = situation((SMALL, 1, 0.5), (LARGE, 100, 0.52), alpha=0.9, queue=500.0)
    known = replace(sure(0.5, 0.52), evidence=EVIDENCE)
    decision = decide(replace(seen, outlook=outlook), known, 1.0)
    assert not decision.is_within_reach
    assert (decision.chosen, decision.reason) == (SMALL, Reason.OUT_OF_REACH)


@pytest.mark.parametrize("cost", [0.0, 1.0])
@pytest.mark.parametrize("names", [("bad", "good"), ("good", "bad")], ids="-".join)
def test_at_the_same_cost_the_more_satisfying_serves(cost: float, names: tuple[str, str]) -> None:
    rates = {"bad": 0.4, "good": 0.9}
    seen = situation(*((name, cost, rates[name]) for name in names), alpha=0.75, queue=20.0)
    assert decide(seen, sure(*(rates[name] for name in names)), 0.0).chosen == "good"
