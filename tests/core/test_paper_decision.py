"""Policy `paper` decides as Algorithm 1 does."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.decision import Estimate, Reason, Situation
from litellm_messplus.core.paper import decide
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


EASY, HARD = (SMALL, 1, 0.9), (LARGE, 5, 0.1)
# V dE = 0.1 * 4 = 0.4 and Q ds = Q * 0.5: equal at Q = 0.8
APART = ((SMALL, 1.0, 0.25), (LARGE, 5.0, 0.75))
# V E - Q s: b and a 1 - 1 = 0, c 2 - 2 = 0 but dearer
TIED = (("c", 2, 1.0), ("b", 1, 0.5), ("a", 1, 0.5))


@pytest.mark.parametrize(
    ("given", "V", "c", "ranking", "explored", "probability", "reason"),
    [
        (situation(EASY, HARD, t=1), 1, 0.0, (LARGE, SMALL), (SMALL,), 1.0, Reason.FIRST_REQUEST),
        # p_16 = 0.1 / 2 = 0.05
        (
            situation(EASY, HARD, t=16, exploration_draw=0.0499),
            *(1, 0.1, (LARGE, SMALL), (SMALL,), 0.05, Reason.EXPLORATION),
        ),
        (
            situation(EASY, HARD, t=16, exploration_draw=0.05),
            *(1, 0.1, (SMALL, LARGE), (), 0.05, Reason.NO_DEBT),
        ),
        (situation(EASY, t=2, exploration_draw=0.0), 1, 0.0, (SMALL,), (), 0.0, Reason.NO_DEBT),
        (situation(*APART, queue=0.79), 0.1, 0.0, (SMALL, LARGE), (), 0.0, Reason.LEAST_PENALTY),
        (situation(*APART, queue=0.81), 0.1, 0.0, (LARGE, SMALL), (), 0.0, Reason.LEAST_PENALTY),
        (situation(*TIED, queue=2.0), 1, 0.0, ("a", "b", "c"), (), 0.0, Reason.LEAST_PENALTY),
        (
            situation(EASY, (MEDIUM, 3, 0.1), t=1, largest=LARGE),
            *(1, 0.1, (MEDIUM, SMALL), (SMALL,), 1.0, Reason.FIRST_REQUEST),
        ),
        (situation(EASY, t=1), 1, 0.1, (SMALL,), (), 1.0, Reason.FIRST_REQUEST),
    ],
    ids=[
        *("the first calls all", "a draw below p_t", "a draw of p_t", "c of zero"),
        *("debt that is too small", "debt that buys satisfaction", "ties: cheaper, then name"),
        *("the largest is down", "one candidate"),
    ],
)
def test_algorithm_1_by_hand(
    given: Situation,
    V: float,
    c: float,
    ranking: tuple[str, ...],
    explored: tuple[str, ...],
    probability: float,
    reason: Reason,
) -> None:
    found = decide(given, V=V, c=c)
    assert (found.ranking, found.explored, found.reason) == (ranking, explored, reason)
    assert found.exploration_probability == pytest.approx(probability)
    assert found.is_exploration == (reason in (Reason.FIRST_REQUEST, Reason.EXPLORATION))


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
def test_the_ranking_permutes_the_healthy(given: Situation, V: float, c: float) -> None:
    decision = decide(given, V=V, c=c)
    healthy = sorted(estimate.candidate for estimate in given.estimates)
    assert sorted(decision.ranking) == healthy
    assert decision.chosen == decision.ranking[0]
    if decision.is_exploration:
        assert sorted([decision.chosen, *decision.explored]) == healthy
        assert (decision.chosen == given.largest) == (given.largest in healthy)
    else:
        assert decision.explored == ()
    predicted = {estimate.candidate: estimate.satisfaction for estimate in given.estimates}
    assert decision.expected_satisfaction == predicted[decision.chosen]


@given(situations(), situations(), st.randoms(use_true_random=False), st.floats(0.0, 2.0))
def test_what_algorithm_1_does_not_know_decides_nothing(
    given: Situation, other: Situation, random: Random, c: float
) -> None:
    """Neither alpha (Q alpha orders nothing), nor what is in flight, another draw, or the order of
    the candidates."""
    changed = replace(given, alpha=0.99, in_flight=other.in_flight, choice_draw=other.choice_draw)
    estimates = [replace(estimate, typical_cost=7.0) for estimate in given.estimates]
    random.shuffle(estimates)
    changed = replace(changed, estimates=tuple(estimates))
    assert decide(changed, V=0.5, c=c) == decide(given, V=0.5, c=c)


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
