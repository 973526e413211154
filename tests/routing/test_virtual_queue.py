"""The queue is the shortfall against alpha, and its bound is the promise (paper, Eq. 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing.decision import after

alphas = st.floats(0.01, 0.99)
satisfactions = st.floats(0.0, 1.0)
queues = st.floats(0.0, 1e6)


def after_answer(queue: float, alpha: float, satisfaction: float) -> float:
    return after(queue, alpha - satisfaction)


def after_revision(queue: float, first: float, second: float) -> float:
    return after(queue, first - second)


def test_an_unsatisfied_request_adds_alpha() -> None:
    assert after_answer(0.5, 0.75, 0.0) == 1.25


def test_a_satisfied_request_pays_one_minus_alpha_back() -> None:
    assert after_answer(0.5, 0.75, 1.0) == 0.25


def test_there_is_no_credit_for_more_than_was_promised() -> None:
    assert after_answer(0.0, 0.75, 1.0) == 0.0


@given(queues, alphas, satisfactions, satisfactions)
def test_never_negative(queue: float, alpha: float, first: float, second: float) -> None:
    assert after_answer(queue, alpha, first) >= 0.0
    assert after_revision(queue, first, second) >= 0.0


@given(alphas, st.lists(satisfactions, min_size=1, max_size=300))
def test_mean_satisfaction_is_at_least_alpha_less_the_queue_over_t(
    alpha: float, answers: list[float]
) -> None:
    """Summing Q(t+1) >= Q(t) + alpha - s gives mean(s) >= alpha - Q(T+1)/T: the guarantee."""
    queue = 0.0
    for satisfaction in answers:
        queue = after_answer(queue, alpha, satisfaction)
    mean = sum(answers) / len(answers)
    assert mean >= alpha - queue / len(answers) - 1e-9


@given(alphas, st.lists(satisfactions, min_size=1, max_size=100))
def test_the_queue_is_the_worst_shortfall_of_any_recent_stretch(
    alpha: float, answers: list[float]
) -> None:
    """Unrolled, Q(T+1) = max over k of the shortfall of the last k requests, k = 0 included."""
    queue = 0.0
    for satisfaction in answers:
        queue = after_answer(queue, alpha, satisfaction)
    stretches = [answers[start:] for start in range(len(answers) + 1)]
    worst = max(alpha * len(stretch) - sum(stretch) for stretch in stretches)
    assert queue == pytest.approx(worst, abs=1e-9)


@given(st.floats(1.0, 100.0), alphas, satisfactions, satisfactions)
def test_a_second_verdict_leaves_the_queue_as_if_it_had_been_the_first(
    queue: float, alpha: float, first: float, second: float
) -> None:
    """Exactly so wherever the debt is large enough for no verdict to empty the queue."""
    revised = after_revision(after_answer(queue, alpha, first), first, second)
    assert revised == pytest.approx(after_answer(queue, alpha, second), abs=1e-9)


def test_the_same_verdict_twice_moves_nothing() -> None:
    assert after_revision(0.35, 1.0, 1.0) == pytest.approx(0.35)
