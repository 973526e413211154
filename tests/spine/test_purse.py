"""Who reads the log only now and then spends no more than there is, and no less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.runtime.purse import LONGEST_SECONDS, MOST, Purse

LAG = 2.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


STEPS = st.lists(st.tuples(st.floats(0.1, 3.0), st.booleans()), max_size=200)


@given(st.floats(0.0, 50.0), STEPS)
def test_a_budget_is_spent_and_no_more(budget: float, steps: list[tuple[float, bool]]) -> None:
    """Each step is a cost, and now and then a reading of the log."""
    clock, spent = Clock(), 0.0
    purse = Purse(LAG, clock=clock)
    for number, (cost, is_read) in enumerate(steps):
        if is_read or number == 0:
            clock.now += LAG + 1.0
            purse.learn(budget - spent, clock.now)
        if purse.left >= cost:
            purse.reserve(str(number), cost)
            purse.settled(str(number))
            spent += cost
        else:
            assert spent + cost > budget - 1e-9

    assert spent <= budget + 1e-9


def test_nothing_is_left_before_the_log_was_read() -> None:
    assert Purse(LAG).left == 0.0
    assert Purse(LAG, known=3.0).left == 3.0


@pytest.mark.parametrize(
    ("is_settled", "read_at", "is_reserved"),
    [
        (False, LAG + 1.0, True),
        (False, LONGEST_SECONDS + 1.0, False),
        (True, LAG - 1.0, True),
        (True, LAG + 1.0, False),
    ],
)
def test_a_cost_is_reserved_to_the_log(is_settled: bool, read_at: float, is_reserved: bool) -> None:
    purse = Purse(LAG, known=10.0, clock=Clock())
    purse.reserve("a", 4.0)
    if is_settled:
        purse.settled("a")
    purse.learn(6.0 if is_settled else 10.0, read_at)

    assert purse.reserved == purse.cost("a") == (4.0 if is_reserved else 0.0)


def test_a_cost_that_is_known_better_takes_the_place_of_the_expected_one() -> None:
    purse = Purse(LAG, known=10.0, clock=Clock())
    for cost, left in ((4.0, 6.0), (7.0, 3.0), (1.0, 9.0)):
        purse.reserve("a", cost)
        assert purse.left == pytest.approx(left)


def test_only_so_many_costs_are_reserved() -> None:
    purse = Purse(LAG, known=0.0, clock=Clock())
    for number in range(MOST + 10):
        purse.reserve(str(number), 1.0)

    assert purse.reserved == MOST
