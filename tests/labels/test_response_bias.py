"""How much oftener unsatisfied users answer, from a judge that errs."""

import random
from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.response_bias import (
    Audit,
    Estimate,
    cautious,
    corrected_rate,
    estimate,
)
from litellm_messplus.routing.decision import label_weight

counts = st.integers(0, 3000)
audits = st.builds(
    Audit, st.builds(Agreement, counts, counts, counts, counts), silent_satisfied=counts,
    silent_unsatisfied=counts,
)  # fmt: skip


def simulated_audit(
    requests: int, ratio: float, *, seed: int, hit_rate: float = 0.9, alarm_rate: float = 0.25
) -> Audit:
    """A simulated crowd, 70 % satisfied, of which a tenth of the satisfied answer."""
    generator = random.Random(seed)
    said = {(judge, user): 0 for judge in (True, False) for user in (True, False, None)}
    for _ in range(requests):
        is_satisfied = generator.random() < 0.7
        answers = generator.random() < 0.1 * (1.0 if is_satisfied else ratio)
        judge = generator.random() < (hit_rate if is_satisfied else alarm_rate)
        said[judge, is_satisfied if answers else None] += 1
    both = [said[judge, user] for judge in (True, False) for user in (True, False)]
    return Audit(Agreement(*both), said[True, None], said[False, None])


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_the_ratio_is_found_though_the_judge_errs(ratio: float) -> None:
    found = estimate(simulated_audit(200_000, ratio, seed=1))

    assert found.is_corrected
    assert not found.is_thin
    assert found.ratio == pytest.approx(ratio, rel=0.06)


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_the_interval_holds_the_truth_as_often_as_it_says(ratio: float) -> None:
    """95 of 100, within what 200 tries allow."""
    found = [estimate(simulated_audit(3000, ratio, seed=seed)) for seed in range(200)]

    held = sum(each.low <= ratio <= each.high for each in found)
    assert 180 <= held <= 199
    assert all(each.is_corrected for each in found)


def test_a_judge_at_its_word_pulls_towards_one() -> None:
    """Why its errors are taken out: what it says of silent users alone is not the truth."""
    audit = simulated_audit(200_000, 3.0, seed=2)
    said = audit.answered
    no = (said.only_user_satisfied + said.neither) / (
        said.only_user_satisfied + said.neither + audit.silent_unsatisfied
    )
    yes = (said.both_satisfied + said.only_judge_satisfied) / (
        said.both_satisfied + said.only_judge_satisfied + audit.silent_satisfied
    )

    assert 1.0 < no / yes < 2.6 < estimate(audit).ratio


def test_nothing_says_nothing() -> None:
    found = estimate(Audit())

    assert found.ratio == pytest.approx(1.0)
    assert found.low < 0.25 < 4.0 < found.high
    assert found.is_thin


@pytest.mark.parametrize(
    "audit",
    [
        replace(simulated_audit(3000, 3.0, seed=3), answered=Agreement(10, 2, 2, 10)),
        simulated_audit(3000, 3.0, seed=3, hit_rate=0.5, alarm_rate=0.5),  # it guesses
        Audit(Agreement(40, 10, 10, 40), silent_satisfied=1000),  # more than its hit rate bears
    ],
    ids=["few", "guessing", "out of range"],
)
def test_a_judge_that_tells_too_little_is_taken_at_its_word_and_that_is_said(audit: Audit) -> None:
    found = estimate(audit)

    assert not found.is_corrected
    assert found.is_thin


@given(audits)
def test_whatever_was_counted_the_ratio_is_inside_its_interval(audit: Audit) -> None:
    found = estimate(audit)

    assert 0.0 < found.low <= found.ratio <= found.high


def test_the_error_is_that_of_the_bootstrap() -> None:
    """Against counts drawn again from the same shares: the delta method leaves nothing out."""
    audit = simulated_audit(5000, 2.0, seed=4)
    said = audit.answered
    cells = [
        said.both_satisfied, said.only_judge_satisfied, said.only_user_satisfied, said.neither,
        audit.silent_satisfied, audit.silent_unsatisfied,
    ]  # fmt: skip
    generator = random.Random(5)
    logs = []
    for _ in range(300):
        drawn = [0] * 6
        for cell in generator.choices(range(6), cells, k=sum(cells)):
            drawn[cell] += 1
        logs.append(log(estimate(Audit(Agreement(*drawn[:4]), *drawn[4:])).ratio))
    mean = sum(logs) / len(logs)
    deviation = (sum((each - mean) ** 2 for each in logs) / (len(logs) - 1)) ** 0.5

    assert width(estimate(audit)) == pytest.approx(2.0 * 1.96 * deviation, rel=0.15)


def width(found: Estimate) -> float:
    return log(found.high) - log(found.low)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.floats(0.1, 10.0))
def test_the_corrected_rate_is_the_mean_by_the_weights_of_learning(
    verdicts: list[float], ratio: float
) -> None:
    weights = [label_weight(value, ratio) for value in verdicts]
    expected = sum(w * v for w, v in zip(weights, verdicts, strict=True)) / sum(weights)
    mean = sum(verdicts) / len(verdicts)
    mean_square = sum(value * value for value in verdicts) / len(verdicts)

    assert corrected_rate(mean, mean_square, ratio) == pytest.approx(expected, abs=1e-9)


def test_an_audit_that_says_nothing_corrects_nothing() -> None:
    assert cautious(estimate(Audit())) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("ratio", [0.5, 2.0, 3.0])
def test_the_more_an_audit_rests_on_the_more_is_corrected(ratio: float) -> None:
    """Never beyond the estimate, and at last all of it."""
    steps = [
        cautious(Estimate(ratio, ratio / wide, ratio * wide, is_corrected=True, is_thin=False))
        for wide in (100.0, 3.0, 1.5, 1.01)
    ]
    away = [abs(log(step)) for step in steps]
    assert away == sorted(away)
    assert away[0] < 0.3 * abs(log(ratio))
    assert steps[-1] == pytest.approx(ratio, rel=0.01)
