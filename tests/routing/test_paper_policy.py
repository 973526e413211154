"""Policy `paper` decides as Algorithm 1 does."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing.decision import Estimate, Reason, Situation
from litellm_messplus.routing.paper import decide
from tests.support.builders import LARGE, MEDIUM, SMALL, situation

NAMES = ("a", "b", "c", "d", "e")


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    # Grids rather than any float, so that ties happen, and are ties.
    costs = st.integers(0, 8).map(lambda eighths: eighths / 8)
    satisfactions = st.integers(0, 4).map(lambda quarters: quarters / 4)
    return Situation(
        t=draw(st.integers(1, 1000)),
        alpha=0.6,
        queue=draw(st.integers(0, 20)) / 4,
        in_flight=draw(st.integers(-4, 4)) / 4,
        estimates=tuple(
            Estimate(name, draw(costs), draw(costs), draw(satisfactions)) for name in names
        ),
        largest=draw(st.sampled_from(NAMES)),
        exploration_draw=draw(st.floats(0.0, 1.0, exclude_max=True)),
        choice_draw=draw(st.floats(0.0, 1.0, exclude_max=True)),
    )


def test_the_first_request_calls_all_and_the_user_gets_the_largest() -> None:
    first = situation(
        (SMALL, 1, 0.5), (LARGE, 5, 0.5), (MEDIUM, 3, 0.5), t=1, exploration_draw=0.999
    )
    decision = decide(first, V=1.0, c=0.0)
    assert decision.chosen == LARGE
    assert set(decision.explored) == {SMALL, MEDIUM}
    assert decision.is_exploration
    assert decision.exploration_probability == 1.0
    assert decision.reason is Reason.FIRST_REQUEST


def test_explores_when_the_draw_is_below_p_t() -> None:
    # p_16 = 0.1 / 2 = 0.05
    below = situation((SMALL, 1, 0.9), (LARGE, 5, 0.1), t=16, exploration_draw=0.0499)
    decision = decide(below, V=1.0, c=0.1)
    assert decision.is_exploration
    assert (decision.chosen, decision.explored) == (LARGE, (SMALL,))
    assert decision.exploration_probability == pytest.approx(0.05)


@pytest.mark.parametrize("exploration_draw", [0.05, 0.0501])
def test_does_not_explore_when_the_draw_is_p_t_or_more(exploration_draw: float) -> None:
    at_least = situation((SMALL, 1, 0.9), (LARGE, 5, 0.1), t=16, exploration_draw=exploration_draw)
    decision = decide(at_least, V=1.0, c=0.1)
    assert not decision.is_exploration
    assert (decision.chosen, decision.explored) == (SMALL, ())
    assert decision.exploration_probability == pytest.approx(0.05)


def test_c_of_zero_never_explores_again() -> None:
    assert not decide(situation((SMALL, 1, 0.5), t=2, exploration_draw=0.0), V=1.0, c=0.0).explored


def test_without_debt_the_cheapest_serves() -> None:
    assert decide(situation((LARGE, 5, 1.0), (SMALL, 1, 0.0)), V=1.0, c=0.0).chosen == SMALL


def test_debt_buys_satisfaction_from_the_point_where_it_is_worth_its_price() -> None:
    # V dE = 0.1 * 4 = 0.4 and Q ds = Q * 0.5: equal at Q = 0.8
    estimates = ((SMALL, 1.0, 0.25), (LARGE, 5.0, 0.75))
    assert decide(situation(*estimates, queue=0.79), V=0.1, c=0.0).chosen == SMALL
    assert decide(situation(*estimates, queue=0.81), V=0.1, c=0.0).chosen == LARGE


@given(situations(), st.integers(1, 16).map(lambda v: v / 8), st.sampled_from([0.25, 0.5, 0.875]))
def test_chooses_the_argmin_of_cost_and_drift(given: Situation, V: float, alpha: float) -> None:
    """A brute force over the paper's own expression, with its Q alpha; ties: cheaper, then name."""
    given = replace(given, t=given.t + 1)
    decision = decide(given, V=V, c=0.0)

    def objective(estimate: Estimate) -> tuple[float, float, str]:
        drift = given.queue * (alpha - estimate.satisfaction)
        return V * estimate.cost + drift, estimate.cost, estimate.candidate

    assert decision.ranking == tuple(e.candidate for e in sorted(given.estimates, key=objective))
    least = min(objective(estimate)[0] for estimate in given.estimates)
    assert next(objective(e)[0] for e in given.estimates if e.candidate == decision.chosen) == least


@given(situations(), st.floats(0.001, 10.0), st.floats(0.0, 2.0))
def test_the_ranking_is_a_permutation_of_the_healthy_candidates(
    given: Situation, V: float, c: float
) -> None:
    decision = decide(given, V=V, c=c)
    healthy = sorted(estimate.candidate for estimate in given.estimates)
    assert sorted(decision.ranking) == healthy
    assert decision.chosen == decision.ranking[0]
    if decision.is_exploration:
        assert sorted([decision.chosen, *decision.explored]) == healthy
        assert (decision.chosen == given.largest) == (given.largest in healthy)
    else:
        assert decision.explored == ()


@given(situations(), st.randoms(use_true_random=False), st.floats(0.0, 2.0))
def test_the_order_in_which_candidates_are_listed_decides_nothing(
    given: Situation, random: Random, c: float
) -> None:
    shuffled = list(given.estimates)
    random.shuffle(shuffled)
    assert decide(replace(given, estimates=tuple(shuffled)), V=0.5, c=c) == decide(
        given, V=0.5, c=c
    )


def test_equal_penalties_go_to_the_cheaper_and_then_by_name() -> None:
    # V E - Q s: b and a 1 - 1 = 0, c 2 - 2 = 0 but dearer
    tied = situation(("c", 2, 1.0), ("b", 1, 0.5), ("a", 1, 0.5), queue=2.0)
    assert decide(tied, V=1.0, c=0.0).ranking == ("a", "b", "c")


def test_an_exploration_without_the_largest_serves_the_dearest_of_the_healthy() -> None:
    without = situation((SMALL, 1, 0.9), (MEDIUM, 3, 0.1), t=1, largest=LARGE)
    decision = decide(without, V=1.0, c=0.1)
    assert (decision.chosen, decision.explored) == (MEDIUM, (SMALL,))


def test_an_exploration_of_one_healthy_candidate_calls_it_alone() -> None:
    decision = decide(situation((SMALL, 1, 0.9), t=1), V=1.0, c=0.1)
    assert (decision.ranking, decision.explored) == ((SMALL,), ())


@given(situations(), situations(), st.floats(0.0, 2.0))
def test_what_algorithm_1_does_not_know_decides_nothing(
    given: Situation, other: Situation, c: float
) -> None:
    """Neither alpha (Q alpha orders nothing), nor what is in flight, nor another draw."""
    told = replace(given, alpha=0.99, in_flight=other.in_flight, choice_draw=other.choice_draw)
    typical = (replace(estimate, typical_cost=7.0) for estimate in given.estimates)
    told = replace(told, estimates=tuple(typical))
    assert decide(told, V=0.5, c=c) == decide(given, V=0.5, c=c)


@given(situations(), st.floats(0.0, 2.0))
def test_the_propensity_is_the_chance_of_the_way_that_was_taken(given: Situation, c: float) -> None:
    explored, plain = (
        decide(replace(given, exploration_draw=draw), V=0.5, c=c) for draw in (0.0, 1.0 - 2**-53)
    )
    if explored.is_exploration == plain.is_exploration:
        assert explored.propensity == plain.propensity == pytest.approx(1.0)
    else:
        assert explored.propensity + plain.propensity == pytest.approx(1.0)
        assert explored.propensity == explored.exploration_probability


@given(situations(), st.floats(0.0, 2.0))
def test_what_is_expected_is_the_prediction_for_the_chosen(given: Situation, c: float) -> None:
    decision = decide(given, V=0.5, c=c)
    predicted = {estimate.candidate: estimate.satisfaction for estimate in given.estimates}
    assert decision.expected_satisfaction == predicted[decision.chosen]


def test_without_a_debt_the_cheapest_serves_and_with_one_the_least_penalty() -> None:
    reasons = [
        decide(situation((SMALL, 2.0, 0.25), queue=queue), V=0.1, c=0.0).reason
        for queue in (0.0, 0.5)
    ]
    assert reasons == [Reason.NO_DEBT, Reason.LEAST_PENALTY]
