"""Agreement of a judge with the users: kappa as in the books, and a verdict only on evidence."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.agreement import ENOUGH, Agreement

COUNT = st.integers(0, 400)
TABLES = st.builds(Agreement, COUNT, COUNT, COUNT, COUNT)


def drawn(
    random: Random, calls: int, *, satisfied: float, misses: float, flatters: float
) -> Agreement:
    """Users satisfied at that rate; the judge errs on good and on bad answers at known rates."""
    counts = [0, 0, 0, 0]
    for _ in range(calls):
        user = random.random() < satisfied
        wrong = random.random() < (misses if user else flatters)
        judge = user != wrong
        counts[(0 if user else 1) if judge else (2 if user else 3)] += 1
    return Agreement(*counts)


def true_kappa(satisfied: float, misses: float, flatters: float) -> float:
    judge = satisfied * (1 - misses) + (1 - satisfied) * flatters
    agree = satisfied * (1 - misses) + (1 - satisfied) * (1 - flatters)
    chance = judge * satisfied + (1 - judge) * (1 - satisfied)
    return (agree - chance) / (1 - chance)


def test_kappa_by_hand() -> None:
    """20 + 15 of 50 agree: 0.7. By chance 0.5 x 0.6 + 0.5 x 0.4 = 0.5. (0.7 - 0.5) / 0.5 = 0.4."""
    agreement = Agreement(
        both_satisfied=20, only_judge_satisfied=5, only_user_satisfied=10, neither=15
    )

    assert agreement.calls == 50
    assert agreement.share == pytest.approx(0.7)
    assert agreement.kappa == pytest.approx(0.4)


def test_the_standard_error_is_that_of_a_balanced_table() -> None:
    """Where both call half of the answers satisfactory, the formula comes to
    sqrt((1 - kappa^2) / n). Here with half a call added to each count: 601 of 802 agree."""
    kappa = 2 * 601 / 802 - 1

    assert Agreement(300, 100, 100, 300).standard_error == pytest.approx(sqrt((1 - kappa**2) / 802))


@given(TABLES)
def test_kappa_lies_in_its_interval_and_that_between_minus_one_and_one(table: Agreement) -> None:
    low, high = table.interval

    assert -1.0 <= low <= high <= 1.0
    if table.kappa is not None:
        assert low <= table.kappa <= high


@given(TABLES)
def test_it_does_not_matter_who_is_the_judge_nor_what_satisfied_means(table: Agreement) -> None:
    swapped = Agreement(
        table.both_satisfied, table.only_user_satisfied, table.only_judge_satisfied, table.neither
    )
    opposite = Agreement(
        table.neither, table.only_user_satisfied, table.only_judge_satisfied, table.both_satisfied
    )

    for other in (swapped, opposite):
        assert other.interval == pytest.approx(table.interval, abs=1e-6)
        if table.kappa is not None:
            assert other.kappa == pytest.approx(table.kappa)


def test_where_both_said_one_thing_of_everything_the_judge_counts() -> None:
    agreement = Agreement(both_satisfied=1000)

    assert agreement.kappa is None
    assert agreement.share == 1.0
    assert agreement.may_be(0.99)


def test_without_calls_nothing_is_known() -> None:
    assert Agreement().kappa is None
    assert Agreement().share is None
    assert Agreement().may_be(1.0)


@given(st.lists(st.integers(0, 3), max_size=ENOUGH - 1))
def test_fewer_calls_than_enough_say_nothing(cells: list[int]) -> None:
    table = Agreement(*(cells.count(cell) for cell in range(4)))

    assert not table.is_enough
    assert table.may_be(1.0)


@pytest.mark.parametrize(
    ("satisfied", "misses", "flatters"),
    [(0.5, 0.2, 0.2), (0.8, 0.1, 0.4), (0.7, 0.3, 0.7), (0.9, 0.05, 0.3)],
)
@pytest.mark.parametrize("calls", [60, 300])
def test_the_interval_holds_the_truth_nineteen_times_of_twenty(
    calls: int, satisfied: float, misses: float, flatters: float
) -> None:
    random = Random(7)
    truth = true_kappa(satisfied, misses, flatters)
    tables = [
        drawn(random, calls, satisfied=satisfied, misses=misses, flatters=flatters)
        for _ in range(1500)
    ]

    held = sum(table.interval[0] <= truth <= table.interval[1] for table in tables) / len(tables)

    assert 0.92 < held < 0.985


def test_a_judge_that_guesses_stops_counting_and_one_that_agrees_does_not() -> None:
    random = Random(7)
    guesses = [
        drawn(random, 400, satisfied=0.7, misses=0.5, flatters=0.5).may_be(0.2) for _ in range(500)
    ]
    agrees = [
        drawn(random, 400, satisfied=0.7, misses=0.1, flatters=0.2).may_be(0.2) for _ in range(500)
    ]

    assert sum(guesses) < 0.05 * len(guesses)
    assert all(agrees)


def test_a_judge_that_says_yes_to_everything_stops_counting_but_not_on_one_disagreement() -> None:
    assert Agreement(both_satisfied=29, only_judge_satisfied=1).may_be(0.2)
    assert not Agreement(both_satisfied=300, only_judge_satisfied=100).may_be(0.2)


def test_it_says_itself_in_words() -> None:
    assert str(Agreement(20, 5, 10, 15)) == "0.40 (0.14 to 0.63, 50 calls)"
    assert str(Agreement()) == "unknown (0 calls)"
