"""How sure a rate is: bounds, the way that labels move it, verdicts replaced exactly."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.head import Label
from litellm_messplus.core.rates import FadingRate, optimism, rates

shares = st.floats(0.0, 1.0)
weights = st.floats(0.1, 1.0)
verdicts = st.builds(Label, shares, weights)
labels = st.lists(st.tuples(st.integers(0, 2), shares, weights), max_size=60)


def learned(taken: list[tuple[int, float, float]]) -> list[FadingRate]:
    means = [FadingRate() for _ in range(3)]
    for model, label, weight in taken:
        means[model].add(label, weight)
    return means


def after(count: int, share: float) -> list[FadingRate]:
    """Three models with ``count`` labels each, of which that share is satisfied."""
    means = [FadingRate() for _ in range(3)]
    for number in range(count):
        satisfied = int((number + 1) * share) > int(number * share)
        for mean in means:
            mean.add(float(satisfied))
    return means


@given(labels)
def test_a_rate_and_its_deviation_are_a_share(taken: list[tuple[int, float, float]]) -> None:
    rate, deviation = rates(learned(taken))
    assert len(rate) == len(deviation) == 3
    assert all(0.0 <= each <= 1.0 for each in rate)
    assert all(0.0 < each <= 0.5 for each in deviation)
    assert all(extra >= 0.0 for extra in optimism(learned(taken)))


def test_before_the_first_label_nothing_tells_the_models_apart() -> None:
    rate, deviation = rates(learned([]))
    assert len(set(rate)) == len(set(deviation)) == len(set(optimism(learned([])))) == 1


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_the_rate_nears_the_share_that_is_satisfied_and_its_deviation_falls(share: float) -> None:
    assert rates(after(400, share))[0] == pytest.approx([share] * 3, abs=0.01)
    deviations = [rates(after(count, share))[1][0] for count in (0, 8, 32, 128, 512)]
    assert deviations == sorted(deviations, reverse=True)
    assert deviations[-1] < deviations[0] / 3


@given(labels, st.integers(0, 2))
def test_a_label_moves_its_rate(taken: list[tuple[int, float, float]], model: int) -> None:
    before = rates(learned(taken))[0][model]
    assert rates(learned([*taken, (model, 1.0, 1.0)]))[0][model] >= before - 1e-12
    assert rates(learned([*taken, (model, 0.0, 1.0)]))[0][model] <= before + 1e-12


def test_one_bad_label_condemns_none() -> None:
    means = learned([(0, 0.0, 1.0)])
    rate, deviation = rates(means)
    assert rate[1] / 2 < rate[0] < rate[1] == rate[2]
    assert rate[0] + optimism(means)[0] * deviation[0] > rate[1]


def test_old_labels_fade_so_that_a_model_may_change() -> None:
    means = after(3000, 1.0)
    for _ in range(3000):
        for mean in means:
            mean.add(0.0)
    assert max(rates(means)[0]) < 0.1


def test_who_got_fewer_labels_is_looked_at_no_less_kindly() -> None:
    means = learned([(0, 1.0, 1.0)] * 40 + [(1, 1.0, 1.0)] * 10 + [(2, 1.0, 1.0)])
    often, seldom, hardly = optimism(means)
    assert often <= seldom <= hardly


Taken = list[tuple[int, float, float]]


@given(labels, verdicts, verdicts, labels)
def test_a_revision_equals_having_counted_the_other_label(
    before: Taken, first: Label, second: Label, later: Taken
) -> None:
    """And where it changes what a label counts, all but the fading of what came before, which is a
    thousandth."""
    for new, off in ((replace(first, value=second.value), 0.0), (second, 2e-3)):
        revised, direct = FadingRate(), FadingRate()
        for _, label, weight in before:
            revised.add(label, weight)
            direct.add(label, weight)
        mark = revised.add(first.value, first.weight)
        direct.add(new.value, new.weight)
        for _, label, weight in later if off == 0.0 else ():
            revised.add(label, weight)
            direct.add(label, weight)
        revised.revise(mark, first, new)
        assert revised.total == pytest.approx(direct.total, rel=off, abs=max(off, 1e-9))
        assert revised.weight == pytest.approx(direct.weight, rel=off, abs=max(off, 1e-9))


def test_a_label_from_before_a_restart_is_revised_without_effect() -> None:
    mean = FadingRate()
    marks = [mean.add(label) for label in [1.0] * 300 + [0.0] * 60]
    mean.restart(60.0, 0.0)
    mean.revise(marks[0], Label(1.0), Label(0.0))
    assert (mean.weight, mean.total) == (60.0, 0.0)
    mean.revise(marks[-1], Label(0.0), Label(1.0))
    assert mean.total == 1.0
