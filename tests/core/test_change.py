"""A model that changes is found out, from its labels against what the prompt predicted; one that
stays as it is is left alone."""

import json
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.change import BELIEVED, BOUGHT, KNOWN, TESTS, ChangeTest
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.rates import FadingRate, rates
from litellm_messplus.core.surface import NUMBERS

BOUND = max(alarm for _, alarm in TESTS)


class Watched:
    """A mean and its test, fed with labels predicted by the mean, or as given."""

    def __init__(self) -> None:
        self.mean, self.test, self.alarms = FadingRate(), ChangeTest(), list[int]()
        self.labels = 0

    def add(self, value: float, weight: float = 1.0, guess: float | None = None) -> bool:
        expected = rates([self.mean])[0][0] if guess is None else guess
        self.mean.add(value, weight)
        self.labels += 1
        is_found = self.test.add(
            value, expected, Label(value, weight), self.mean, float(self.labels)
        )
        if is_found:
            self.alarms.append(self.labels)
        return is_found


def after(labels: Sequence[float]) -> Watched:
    watched = Watched()
    for label in labels:
        watched.add(label)
    return watched


def drawn(rate: float, count: int, seed: int) -> list[float]:
    draws = random.Random(f"{seed} {rate}")
    return [float(draws.random() < rate) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("good", "bad", "soon"), [(0.9, 0.36, 40), (0.85, 0.5, 60)])
def test_after_a_drop_the_mean_starts_again(seed: int, good: float, bad: float, soon: int) -> None:
    watched = after([*drawn(good, 600, seed), *drawn(bad, 100, seed)])
    change = watched.test.change
    assert change is not None
    assert 600 < watched.alarms[-1] <= 600 + soon
    assert change.found == watched.alarms[-1]
    assert change.since == pytest.approx(600, abs=40)
    assert change.before == pytest.approx(good, abs=0.07)
    assert watched.mean.weight <= BELIEVED + 100
    assert watched.mean.total / watched.mean.weight == pytest.approx(bad, abs=0.2)


def test_half_of_the_drops_by_ten_points_are_found_within_some_150_labels() -> None:
    found = []
    for seed in range(30):
        watched = after([*drawn(0.85, 600, seed), *drawn(0.75, 600, seed)])
        found.append(next((each - 600 for each in watched.alarms if each > 600), 600))
    assert sorted(found)[15] <= 170


def test_an_improvement_is_found_too() -> None:
    watched = after([*drawn(0.4, 500, 1), *drawn(0.9, 100, 2)])
    change = watched.test.change
    assert change is not None
    assert change.before == pytest.approx(0.4, abs=0.08)
    assert watched.mean.total / watched.mean.weight > 0.75


@pytest.mark.parametrize("seed", range(5))
def test_an_alarm_of_bad_luck_is_taken_back_and_the_mean_gets_its_labels_back(seed: int) -> None:
    watched = after(drawn(0.7, 600, seed))
    while not watched.add(0.0):
        assert watched.labels < 620
    assert watched.mean.weight <= BELIEVED

    for label in drawn(0.7, 150, seed + 100):
        watched.add(label)
    assert (watched.test.change, watched.test.aside, watched.test.due) == (None, None, 0)
    assert watched.mean.weight > 200.0
    assert watched.mean.total / watched.mean.weight == pytest.approx(0.7, abs=0.08)


@pytest.mark.parametrize(("good", "bad"), [(0.9, 0.36), (0.85, 0.5), (0.9, 0.7)])
def test_an_alarm_of_a_change_stands(good: float, bad: float) -> None:
    watched = [after([*drawn(good, 600, seed), *drawn(bad, 300, seed)]) for seed in range(10)]
    assert sum(each.test.change is not None for each in watched) >= 9
    assert all(each.mean.weight < 500.0 for each in watched if each.test.change is not None)


@pytest.mark.parametrize("rate", [0.4, 0.7, 0.95])
def test_ordinary_luck_hardly_ever_raises_an_alarm(rate: float) -> None:
    alarms = sum(len(after(drawn(rate, 2500, seed)).alarms) for seed in range(16))
    assert alarms <= 12  # in 40,000 labels


def test_hard_prompts_are_not_taken_for_a_worse_model() -> None:
    """The mean alone would be found out of date: the prompts say why the labels are bad."""
    luck, is_blind = random.Random(3), Watched()
    watched = Watched()
    for number in range(1200):
        rate = 0.9 if number < 600 else 0.6
        label = float(luck.random() < rate)
        watched.add(label, guess=rate)
        is_blind.add(label)
    assert watched.alarms == []
    assert is_blind.alarms != []


def test_a_label_of_much_weight_is_no_more_evidence_than_another() -> None:
    """A weight makes up for verdicts that are missing; it is one observation all the same."""
    plain, heavy = after(drawn(0.8, 600, 0)), after(drawn(0.8, 600, 0))
    for label in drawn(0.5, 8, 0):
        plain.add(label, 1.0, 0.8)
        heavy.add(label, 3.0, 0.8)
    assert heavy.test.suspicion == pytest.approx(plain.test.suspicion)


def test_a_sum_for_a_drop_says_since_when_there_is_a_drop() -> None:
    """Not one with more evidence for an improvement, which takes more still."""
    watched = after(drawn(0.8, 600, 0))
    drop, _, rise, _ = watched.test.sums
    drop.evidence, drop.weight, drop.total, drop.since = 4.7, 50.0, 30.0, 550.0
    rise.evidence, rise.weight, rise.total, rise.since = 7.0, 200.0, 170.0, 400.0
    assert watched.add(0.0, guess=0.8)
    assert watched.test.change is not None
    assert watched.test.change.since == 550.0


def test_labels_that_an_alarm_selected_weigh_little() -> None:
    watched = after(drawn(0.85, 600, 5))
    while not watched.alarms:
        watched.add(float(watched.labels % 5 < 3))  # 0.6
    assert watched.labels > 600 + BELIEVED
    assert watched.mean.weight == pytest.approx(BELIEVED)
    assert watched.mean.total / watched.mean.weight == pytest.approx(0.6, abs=0.15)


def test_a_rate_that_rests_on_little_cannot_be_out_of_date() -> None:
    few, many = after([1.0] * int(KNOWN / 2)), after([1.0] * int(2 * KNOWN))
    assert not any(few.add(0.0, guess=0.9) for _ in range(20))
    assert few.test.suspicion == 0.0
    assert any(many.add(0.0, guess=0.9) for _ in range(20))


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.1, 1.0), st.floats(0.0, 1.0)), max_size=300)
)
def test_sums_are_bounded_and_restarts_keep_newest(taken: list[tuple[float, float, float]]) -> None:
    watched = after([1.0] * int(KNOWN + 1))
    for value, weight, guess in taken:
        before = watched.mean.weight
        is_found = watched.add(value, weight, guess)
        assert all(0.0 <= each.evidence <= BOUND for each in watched.test.sums)
        assert all(0.0 <= each.weight <= watched.mean.weight + 1e-9 for each in watched.test.sums)
        assert is_found == (watched.test.change is not None and watched.mean.weight <= before)
        if is_found:
            break


@given(st.lists(st.floats(0.0, 1.0), max_size=60), st.floats(0.1, 0.9))
def test_a_test_made_from_its_numbers_continues(values: list[float], guess: float) -> None:
    watched = after([1.0] * 200)
    for value in values:
        watched.add(value, guess=guess)
    again = ChangeTest.of(watched.test.numbers(), watched.test.plain())
    assert again == watched.test


# What follows an alarm.


def prompt(number: int) -> Prompt:
    surface = np.full(len(NUMBERS), (number % 7) / 3.0, np.float32)
    return Prompt(np.array([0.1, 0.2], np.float32), surface)


def taught(predictor: Predictor, values: Sequence[float], name: str = "small") -> None:
    for value in values:
        number = len(predictor.recent.requests) + predictor.recent.labels
        predictor.decided(float(number), False)
        predictor.learn(name, f"c{number}", f"r{number}", prompt(number), Label(value))


def test_on_an_alarm_a_models_own_heads_are_as_unsure_as_at_first_and_keep_what_they_say() -> None:
    predictor, blank = Predictor(["small", "large"], 2), Predictor(["small", "large"], 2)
    taught(predictor, drawn(0.9, 300, 1))
    taught(predictor, drawn(0.9, 100, 2), "large")
    while predictor.changes[0].change is None:
        taught(predictor, [0.0])
    for mine, first in zip(predictor.heads.readers, blank.heads.readers, strict=True):
        assert np.array_equal(mine.own[0].covariance, first.own[0].covariance)
        assert np.abs(mine.own[0].mean).max() > 0.0
        assert not np.array_equal(mine.own[1].covariance, first.own[1].covariance)
        assert not np.array_equal(mine.shared.covariance, first.shared.covariance)
    assert predictor.rate[0] < 0.5 < predictor.rate[1]


def test_labels_are_due_after_an_alarm() -> None:
    predictor = Predictor(["small", "large"], 2)
    taught(predictor, drawn(0.9, 300, 1))
    assert predictor.changes[0].due == 0
    while predictor.changes[0].change is None:
        taught(predictor, [0.0])
    for _ in range(BOUGHT):
        predictor.decided(0.0, False)  # none are bought
        assert predictor.changes[0].due > 0
        predictor.decided(0.0, True)
    assert predictor.changes[0].due == 0
    assert predictor.changes[1].due == 0


def test_a_snapshot_has_the_change_what_is_due_and_the_sums() -> None:
    predictor = Predictor(["small", "large"], 2)
    taught(predictor, drawn(0.9, 300, 1))
    while predictor.changes[0].change is None:
        taught(predictor, [0.0])
    taught(predictor, drawn(0.9, 150, 3), "large")
    taught(predictor, [0.0], "large")  # a sum above zero
    predictor.decided(7.0, True)
    loaded = Predictor(["small", "large"], 2)
    loaded.load(json.loads(json.dumps(predictor.plain())), predictor.arrays())
    assert loaded.changes == predictor.changes
    assert (loaded.now, loaded.changes[0].due) == (7.0, BOUGHT - 1)
    assert loaded.changes[1].suspicion > 0.0
