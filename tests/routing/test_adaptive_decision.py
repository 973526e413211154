"""Policy `adaptive` decides for one request: purely, in any unit, whatever is healthy."""

from collections import defaultdict
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing.adaptive import BLIND, decide
from litellm_messplus.routing.decision import Decision, Estimate, Reason, Situation
from litellm_messplus.routing.plan import EVIDENCE, Outlook
from litellm_messplus.routing.trying import LEAST_LABELLED, Knowledge
from tests.support.builders import LARGE, MEDIUM, SMALL, situation

NEVER = 1.0 - 2**-53
"""The highest draw: no probe but where a probe is certain."""
PROBES = {Reason.PROBE, Reason.UNSEEN_PROBE}
seeds = st.integers(0, 2**32)


def roll(seed: int, most: int = 5) -> tuple[Situation, Knowledge, float]:
    """Any situation, any knowledge and any integral; no two numbers alike, so that nothing ties. In
    half of them there is an outlook, and in half of these the plan sets the price."""
    random = Random(seed)
    names = [f"model {number}" for number in range(random.randint(1, most))]
    rate = [random.random() for _ in names]
    unit = 10.0 ** random.uniform(-6, 3)
    told = Situation(
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
        told = foreseen(told, seed)
    return told, known, random.uniform(-1, 1)


def foreseen(told: Situation, seed: int) -> Situation:
    """With an outlook on 40 prompts, in which each candidate has numbers of its own."""
    satisfaction, cost = [], []
    for estimate in told.estimates:
        random = np.random.default_rng([seed, int(estimate.candidate.removeprefix("model "))])
        satisfaction.append(random.random(40))
        cost.append(estimate.typical_cost * random.uniform(0.3, 3.0, 40))
    hope = [0.05] * len(told.estimates)
    outlook = Outlook(np.column_stack(satisfaction), np.column_stack(cost), hope)
    return replace(told, outlook=outlook)


def by_the_means(known: Knowledge) -> Knowledge:
    """The same, where reading the prompts has not proved itself."""
    return replace(known, evidence=0.0)


def scaled(told: Situation, factor: float, seed: int) -> Situation:
    estimates = tuple(
        replace(e, cost=factor * e.cost, typical_cost=factor * e.typical_cost)
        for e in told.estimates
    )
    other = replace(told, estimates=estimates)
    return other if told.outlook is None else foreseen(other, seed)


def sure(*rates: float) -> Knowledge:
    """Rates that many labels have made sure of."""
    return Knowledge(rates, (0.001,) * len(rates), (1.0,) * len(rates), is_blank=False)


@given(seeds)
def test_the_ranking_is_a_permutation_of_the_healthy_candidates(seed: int) -> None:
    told, known, integral = roll(seed)
    decision = decide(told, known, integral)
    healthy = [estimate.candidate for estimate in told.estimates]
    assert sorted(decision.ranking) == sorted(healthy)
    assert decision.chosen == decision.ranking[0]
    assert set(decision.explored) <= set(healthy) - {decision.chosen}
    predicted = {estimate.candidate: estimate.satisfaction for estimate in told.estimates}
    assert decision.expected_satisfaction == predicted[decision.chosen]
    assert 0.0 < decision.propensity <= 1.0 + 1e-12
    assert decision.reason


@given(seeds)
def test_the_same_inputs_give_the_same_decision(seed: int) -> None:
    assert decide(*roll(seed)) == decide(*roll(seed))


@given(seeds, st.integers(-10, 30))
def test_the_unit_of_cost_decides_nothing(seed: int, power: int) -> None:
    """Powers of two scale without rounding: all is equal but the price, which is in the unit."""
    told, known, integral = roll(seed)
    plain, other = (
        decide(told, known, integral),
        decide(scaled(told, 2.0**power, seed), known, integral),
    )
    assert plain.price is not None
    assert other == replace(plain, price=2.0**power * plain.price)


@given(seeds, st.floats(1e-6, 1e6))
def test_any_factor_of_the_costs_decides_nothing(seed: int, factor: float) -> None:
    told, known, integral = roll(seed)
    known = by_the_means(known)  # a plan rounds to float32
    plain, other = (
        decide(told, known, integral),
        decide(scaled(told, factor, seed), known, integral),
    )
    assert replace(other, price=None) == replace(plain, price=None)
    assert plain.price is not None
    assert other.price == pytest.approx(factor * plain.price)


@given(seeds)
def test_the_order_in_which_candidates_are_listed_decides_nothing(seed: int) -> None:
    told, known, integral = roll(seed)
    order = list(range(len(told.estimates)))
    Random(seed).shuffle(order)
    turned = Knowledge(
        rate=[known.rate[place] for place in order],
        deviation=[known.deviation[place] for place in order],
        optimism=[known.optimism[place] for place in order],
        is_blank=known.is_blank,
        unseen_labelled=known.unseen_labelled,
        evidence=known.evidence,
    )
    listed = replace(told, estimates=tuple(told.estimates[place] for place in order))
    listed = listed if told.outlook is None else foreseen(listed, seed)
    assert decide(listed, turned, integral) == decide(told, known, integral)


@given(seeds)
def test_propensities_are_the_probabilities_of_the_choices(seed: int) -> None:
    """Over all draws: 60 of the probe's choice, which any number of up to 6 divides evenly."""
    told, known, integral = roll(seed)

    def draw(exploration: float, choice: float) -> Decision:
        return decide(
            replace(told, exploration_draw=exploration, choice_draw=choice), known, integral
        )

    plain = draw(NEVER, 0.0)
    chance = plain.exploration_probability
    seen = {plain.chosen: plain.propensity}
    is_certain = chance == 1.0  # every draw probes, or calls all
    probability = defaultdict(float, {plain.chosen: 0.0 if is_certain else 1.0 - chance})
    for number in range(60):
        probed = draw(0.0, (number + 0.5) / 60)
        assert probed.is_exploration
        assert probed.exploration_probability == chance
        probability[probed.chosen] += chance / 60
        assert seen.setdefault(probed.chosen, probed.propensity) == probed.propensity
    assert sum(seen.values()) == pytest.approx(1.0)
    assert seen == pytest.approx(dict(probability))


@given(seeds)
def test_a_draw_below_the_probability_probes_and_any_other_does_not(seed: int) -> None:
    told, known, integral = roll(seed)
    known = replace(known, is_blank=False)
    chance = decide(told, known, integral).exploration_probability
    below, at = (
        decide(replace(told, exploration_draw=drawn), known, integral)
        for drawn in (chance * 0.999, min(chance, NEVER))
    )
    assert below.reason in PROBES
    assert at.reason not in PROBES
    assert below.is_exploration
    assert at.is_exploration == bool(at.explored)


@given(seeds, st.floats(-40, 40), st.floats(-40, 40))
def test_a_larger_backlog_never_makes_the_choice_less_satisfying(
    seed: int, one: float, other: float
) -> None:
    """Where the prompt says nothing of its own: predictions are the rates, costs the typical."""
    told, known, integral = roll(seed)
    estimates = tuple(
        replace(estimate, cost=estimate.typical_cost, satisfaction=rate)
        for estimate, rate in zip(told.estimates, known.rate, strict=True)
    )
    told = replace(told, estimates=estimates, exploration_draw=NEVER, t=told.t + 1)
    known = by_the_means(known)

    def optimistic(queue: float) -> float:
        chosen = decide(replace(told, queue=queue), known, integral).chosen
        place = [estimate.candidate for estimate in estimates].index(chosen)
        upper = known.rate[place] + known.optimism[place] * known.deviation[place]
        return min(upper, 1.0)

    less, more = sorted((one, other))
    assert optimistic(less) <= optimistic(more)


@given(seeds, st.floats(-5.0, 5.0))
def test_what_is_in_flight_counts_as_what_is_owed(seed: int, moved: float) -> None:
    told, known, integral = roll(seed)
    # Grids, so that both sums are exact.
    queue, part = round(told.queue * 8) / 8, round(moved * 8) / 8
    owed = replace(told, queue=queue + part, in_flight=0.0)
    flying = replace(told, queue=queue, in_flight=part)
    assert decide(owed, known, integral) == decide(flying, known, integral)


@given(seeds)
def test_a_probe_is_made_unseen_where_the_user_would_lose_more_than_another_call_costs(
    seed: int,
) -> None:
    """As far as unseen calls get labels: else it is served, or nothing would be learned."""
    told, known, integral = roll(seed)
    plain = decide(replace(told, exploration_draw=NEVER), known, integral)
    probed = decide(replace(told, exploration_draw=0.0), known, integral)
    estimates = {estimate.candidate: estimate for estimate in told.estimates}
    (tried,) = probed.explored or (probed.chosen,)
    best, probe = estimates[plain.chosen], estimates[tried]
    assert probed.price is not None
    lost = probed.price * (best.satisfaction - probe.satisfaction) - (best.cost - probe.cost)
    labelled = known.unseen_labelled
    is_unseen = labelled >= LEAST_LABELLED and labelled * lost > probe.cost
    assert bool(probed.explored) == is_unseen
    assert probed.chosen == (plain.chosen if is_unseen else tried)
    assert probed.reason is (Reason.UNSEEN_PROBE if is_unseen else Reason.PROBE)


def test_a_probe_is_served_where_unseen_calls_get_no_labels_or_little_is_lost() -> None:
    """Of a small model that this prompt is too hard for, or hardly."""
    told = situation((SMALL, 1, 0.2), (LARGE, 20, 0.9), alpha=0.7, queue=5.0, exploration_draw=0.0)
    known = Knowledge((0.6, 0.9), (0.05, 0.01), (0.0, 0.0), is_blank=False)
    unseen = decide(told, known, 1.0)
    assert unseen.price is not None
    hardly = 0.9 - 19.5 / unseen.price  # half a call of the small one is lost by it
    small, large = told.estimates
    easy = replace(told, estimates=(replace(small, satisfaction=hardly), large))
    served = decide(easy, known, 1.0)
    assert (unseen.chosen, unseen.explored) == (LARGE, (SMALL,))
    assert unseen.propensity == 1.0
    assert (served.chosen, served.explored) == (SMALL, ())
    assert served.propensity == served.exploration_probability
    unlabelled = decide(told, replace(known, unseen_labelled=LEAST_LABELLED / 2), 1.0)
    assert (unlabelled.chosen, unlabelled.explored) == (SMALL, ())


def test_the_plan_sets_the_price_where_reading_the_prompts_has_proved_itself() -> None:
    """Half of the prompts are easy for the small model: a satisfied one of the others costs 9."""
    easy = np.arange(40) < 20
    outlook = Outlook(
        np.column_stack([np.where(easy, 0.9, 0.1), np.full(40, 0.9)]),
        np.broadcast_to([1.0, 10.0], (40, 2)),
        (0.0, 0.0),
    )
    told = situation((SMALL, 1, 0.5), (LARGE, 10, 0.9), exploration_draw=NEVER)
    known = replace(sure(0.5, 0.9), evidence=EVIDENCE)
    means, planned = decide(told, known, 1.0), decide(replace(told, outlook=outlook), known, 1.0)
    doubtful = replace(known, evidence=EVIDENCE - 0.1)
    assert means.price == pytest.approx(9.0 / 0.4, rel=0.1)
    assert planned.price == pytest.approx(9.0 / 0.8, rel=0.2)
    assert decide(replace(told, outlook=outlook), doubtful, 1.0).price == means.price


BLANK = Knowledge((0.7,) * 3, (0.2,) * 3, (1.5,) * 3, is_blank=True)
FIRST = situation(
    (SMALL, 1, 0.7), (LARGE, 5, 0.7), (MEDIUM, 9, 0.7), t=1, exploration_draw=NEVER, alpha=0.75
)


def test_the_first_request_of_a_blank_zoo_is_decided_like_any_other() -> None:
    """Nobody is paid to be told apart before there is anything to tell: the cheapest that may hold
    alpha serves, alone."""
    decision = decide(FIRST, BLANK, 0.0)
    assert (decision.chosen, decision.explored) == (SMALL, ())
    assert not decision.is_exploration
    assert decision.propensity == pytest.approx(1.0)  # a probe would be of the same one


def blank(told: Situation) -> Knowledge:
    """Nobody has said anything of any candidate."""
    return replace(sure(*[0.7] * len(told.estimates)), is_blank=True)


def test_without_a_single_label_the_largest_serves_after_a_while() -> None:
    told = situation((SMALL, 1.0, 0.7), (MEDIUM, 3.0, 0.7), (LARGE, 5.0, 0.7), t=BLIND)
    told = replace(told, exploration_draw=NEVER)
    later = replace(told, t=BLIND + 1)

    assert decide(told, blank(told), 1.0).chosen == SMALL
    assert decide(later, blank(later), 1.0).chosen == LARGE
    assert decide(later, blank(later), 1.0).reason is Reason.UNLABELLED
    assert decide(later, sure(0.7, 0.7, 0.7), 1.0).chosen == SMALL


def test_without_a_label_and_without_the_largest_the_dearest_of_the_healthy_serves() -> None:
    told = situation((SMALL, 1.0, 0.7), (MEDIUM, 3.0, 0.7), t=BLIND + 1, largest="down")
    told = replace(told, exploration_draw=NEVER)
    assert decide(told, blank(told), 1.0).chosen == MEDIUM


@pytest.mark.parametrize(
    ("told", "known"),
    [(FIRST, BLANK), (FIRST, replace(BLANK, is_blank=False)), (replace(FIRST, t=2), BLANK)],
    ids=["at first", "a level added to a zoo that has learned", "labels still to come"],
)
def test_never_are_all_models_called(told: Situation, known: Knowledge) -> None:
    assert decide(told, known, 0.0).explored == ()


@given(seeds)
def test_a_shadow_is_cheaper_than_the_one_that_serves(seed: int) -> None:
    told, known, integral = roll(seed)
    decision = decide(replace(told, exploration_draw=NEVER), known, integral)
    cost = {estimate.candidate: estimate.typical_cost for estimate in told.estimates}
    assert all(cost[name] < cost[decision.chosen] for name in decision.explored)


def test_who_had_bad_luck_answers_beside_the_dear_one_as_long_as_unseen_calls_get_labels() -> None:
    told = situation((SMALL, 1, 0.3), (MEDIUM, 5, 0.6), (LARGE, 50, 0.9), alpha=0.7, queue=1.0)
    told = replace(told, exploration_draw=NEVER)
    known = Knowledge((0.3, 0.6, 0.9), (0.05, 0.06, 0.05), (1.5,) * 3, is_blank=False)
    decision = decide(told, known, 1.0)
    assert (decision.chosen, decision.explored) == (LARGE, (MEDIUM,))
    assert decision.is_exploration
    assert decision.propensity == 1.0  # a probe of it would be made unseen too
    unlabelled = decide(told, replace(known, unseen_labelled=0.0), 1.0)
    assert unlabelled.explored == ()
    assert unlabelled.propensity == pytest.approx(1.0 - unlabelled.exploration_probability)
    assert decide(told, sure(0.3, 0.6, 0.9), 1.0).explored == ()
    assert decide(replace(told, t=BLIND + 1), blank(told), 1.0).explored == ()


@pytest.mark.parametrize("t", [1, 2, 1000])
@pytest.mark.parametrize("draw", [0.0, NEVER])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_one_healthy_candidate_serves(t: int, draw: float, rate: float) -> None:
    alone = situation((SMALL, 1, 0.5), t=t, exploration_draw=draw, choice_draw=draw, queue=9.0)
    for is_blank in (True, False):
        known = Knowledge((rate,), (0.2,), (1.5,), is_blank)
        decision = decide(alone, known, 0.0)
        assert (decision.ranking, decision.explored) == ((SMALL,), ())
        assert decision.propensity == pytest.approx(1.0)


def test_the_cheapest_that_surely_holds_alpha_serves_alone() -> None:
    told = situation((SMALL, 1, 0.3), (MEDIUM, 2, 0.9), (LARGE, 50, 0.95), alpha=0.7, queue=0.5)
    assert decide(told, sure(0.3, 0.9, 0.95), 0.0).chosen == MEDIUM


def test_ahead_of_alpha_the_cheaper_serves_and_behind_it_the_better() -> None:
    told = situation((SMALL, 1, 0.5), (LARGE, 5, 0.9), alpha=0.7, exploration_draw=NEVER)
    assert decide(replace(told, queue=-25.0), sure(0.5, 0.9), 0.0).chosen == SMALL
    assert decide(replace(told, queue=25.0), sure(0.5, 0.9), 0.0).chosen == LARGE


def test_where_nobody_can_hold_alpha_it_says_so_and_pays_no_price_for_nothing() -> None:
    """Half a point of satisfaction is not bought at a hundred times the cost."""
    told = situation((SMALL, 1, 0.50), (LARGE, 100, 0.505), alpha=0.9, queue=500.0)
    decision = decide(told, sure(0.50, 0.505), 0.0)
    assert not decision.is_within_reach
    assert decision.chosen == SMALL


def test_where_nobody_can_hold_alpha_a_plan_pays_no_price_for_nothing_either() -> None:
    outlook = Outlook(
        np.broadcast_to([0.5, 0.52], (40, 2)), np.broadcast_to([1.0, 100.0], (40, 2)), (0.0, 0.0)
    )
    told = situation((SMALL, 1, 0.5), (LARGE, 100, 0.52), alpha=0.9, queue=500.0)
    known = replace(sure(0.5, 0.52), evidence=EVIDENCE)
    decision = decide(replace(told, outlook=outlook), known, 1.0)
    assert not decision.is_within_reach
    assert decision.chosen == SMALL


@pytest.mark.parametrize("cost", [0.0, 1.0])
@pytest.mark.parametrize("names", [("bad", "good"), ("good", "bad")], ids="-".join)
def test_at_the_same_cost_the_more_satisfying_serves(cost: float, names: tuple[str, str]) -> None:
    rates = {"bad": 0.4, "good": 0.9}
    told = situation(*((name, cost, rates[name]) for name in names), alpha=0.75, queue=20.0)
    assert decide(told, sure(*(rates[name] for name in names)), 0.0).chosen == "good"
