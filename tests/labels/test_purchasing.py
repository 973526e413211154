"""Which requests' labels are bought: where they are needed, and while they can be paid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.change import BOUGHT
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import NUMBERS, Surface
from litellm_messplus.labels.buying import (
    DOUBT,
    ENOUGH_PROMPTS,
    LEAST,
    PACE,
    RAREST,
    SUSPECTED,
    UNFAMILIAR,
    Need,
    Spending,
    affordable,
    is_drawn,
    is_unfamiliar,
    need,
    projected_day,
    rate,
    room,
)

COSTS = st.floats(0.0, 1e6)
SHARES = st.floats(0.0, 1.0)


def taught(labels: int, satisfied: float, width: float = 1.0) -> Predictor:
    """Of a small model, so many labels of which that share is good, on prompts of any width."""
    known = Predictor(["small", "large"], 2)
    for number in range(labels):
        value = float(37 * number % 100 < 100 * satisfied)
        prompt = Prompt(np.array([0.1, 0.2], np.float32), surface(width * (number % 7) / 7.0))
        known.learn("small", f"c{number}", f"r{number}", prompt, Label(value))
    return known


def surface(number: float) -> Surface:
    return np.full(len(NUMBERS), number, np.float32)


def test_at_first_all_labels_are_bought_and_ever_fewer_later() -> None:
    rates = [rate(Need(labels)) for labels in (0, 100, 400, 2000, 100_000)]

    assert rates[0] == 1.0
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == LEAST


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Need(1e6, doubt=1.0), DOUBT),
        (Need(1e6, doubt=0.5), 0.5 * DOUBT),
        (Need(1e6, suspicion=1.0), SUSPECTED),
        (Need(1e6, has_changed=True), 1.0),
        (Need(1e6, is_unfamiliar=True), UNFAMILIAR),
    ],
)
def test_when_settled_labels_are_bought_where_it_matters(found: Need, expected: float) -> None:
    assert rate(found) == expected


def test_a_candidate_near_alpha_is_in_doubt_and_one_far_from_it_is_not() -> None:
    near, far = taught(200, 0.7), taught(200, 0.3)

    assert need(near, "large", 0.7, None).doubt > 0.5
    assert need(far, "large", 0.7, None).doubt < 0.01


def test_doubt_goes_as_labels_come_though_the_rate_lies_at_alpha() -> None:
    few, many = taught(100, 0.7), taught(3000, 0.7)

    assert need(many, "large", 0.7, None).doubt < need(few, "large", 0.7, None).doubt


def test_a_model_that_becomes_worse_is_suspected_and_once_that_is_known_labels_are_bought() -> None:
    known, found = taught(600, 0.9), []
    assert need(known, "large", 0.7, None).suspicion == 0.0
    for number in range(20):
        known.learn("small", f"d{number}", f"s{number}", Prompt(None), Label(0.0))
        found.append(need(known, "large", 0.7, None))

    alarm = [each.has_changed for each in found].index(True)
    assert 0.2 < max(each.suspicion for each in found[:alarm]) <= 1.0
    for request in range(BOUGHT):
        assert rate(need(known, "large", 0.7, None)) == 1.0
        known.decided(float(request), True)
    assert rate(need(known, "large", 0.7, None)) < 1.0


def test_a_prompt_twice_as_long_as_any_that_was_judged_is_unfamiliar() -> None:
    known = taught(ENOUGH_PROMPTS, 0.7)

    assert not is_unfamiliar(known, surface(0.5))
    assert is_unfamiliar(known, surface(2.0))
    assert not is_unfamiliar(known, None)
    assert not is_unfamiliar(taught(ENOUGH_PROMPTS - 1, 0.7), surface(2.0))


def test_labels_of_the_largest_are_no_knowledge_of_the_others() -> None:
    known = Predictor(["small", "large"], 2)
    for number in range(500):
        known.learn("large", f"c{number}", f"r{number}", Prompt(None), Label(1.0))

    assert need(known, "large", 0.7, None).labels == 0.0


def test_labels_cost_a_share_of_what_is_saved_beside_the_start_allowance() -> None:
    spending = Spending(saved=100.0, spent=4.0, day_at_largest=50.0)

    assert room(spending, 0.1, 0.02, None) == pytest.approx(10.0 + 1.0 - 4.0)


def test_a_days_budget_is_never_exceeded_whatever_was_saved() -> None:
    spending = Spending(saved=1e6, today=2.5)

    assert room(spending, 0.1, 0.02, 3.0) == 0.5
    assert room(spending, 0.1, 0.02, 2.0) == 0.0
    assert room(spending, 0.1, 0.02, 0.0) == 0.0


def test_routing_that_saves_nothing_buys_no_labels_beyond_the_allowance() -> None:
    assert room(Spending(saved=-50.0, spent=1.0, day_at_largest=50.0), 0.1, 0.02, None) == 0.0


@given(wanted=SHARES, left=COSTS, one=COSTS)
def test_what_is_bought_is_paid_from_what_is_left(wanted: float, left: float, one: float) -> None:
    found = affordable(wanted, left, one)

    assert found == 0.0 or RAREST <= found <= wanted
    assert found * one * PACE <= left * (1.0 + 1e-9)
    if left < one or left == 0.0:
        assert found == 0.0


def test_plenty_buys_all_that_is_wanted() -> None:
    assert affordable(0.4, 1000.0, 1.0) == 0.4


@pytest.mark.parametrize(("hours", "times"), [(0.0, 24.0), (0.5, 24.0), (6.0, 4.0), (24.0, 1.0)])
def test_a_day_is_projected_from_no_less_than_an_hour(hours: float, times: float) -> None:
    assert projected_day(10.0, hours) == pytest.approx(10.0 * times)


def test_a_draw_is_the_same_whoever_asks_and_when() -> None:
    drawn = [is_drawn(7, f"r{number}", 0.3) for number in range(300)]

    assert drawn == [is_drawn(7, f"r{number}", 0.3) for number in range(300)]
    assert 50 < sum(drawn) < 130
