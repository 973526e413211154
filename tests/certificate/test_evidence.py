"""What labels of all kinds prove of all requests: right at every look, however they came about."""

from dataclasses import replace

import numpy as np
import pytest

from litellm_messplus.certificate.evidence import LabelGroup, Sampling, bounds, sampling_of
from litellm_messplus.certificate.sequence import Vector
from tests.certificate.simulated import World, looks

WORLDS = {
    "a few labels": World(answers=(0.05, 0.05)),
    "a few, drawn": World(answers=(0.05, 0.05), drawn=0.05),
    "a judge alone that does not err": World(graded=0.2),
    "unsatisfied users answer more often, and a judge audits": World(
        answers=(0.6, 0.2), graded=0.3
    ),
    "the judge errs": World(answers=(0.3, 0.3), graded=0.3, errors=0.1),
    "both": World(answers=(0.6, 0.2), graded=0.3, errors=0.1),
}


def vector(*values: float) -> Vector:
    return np.array(values)


EXPECTED = {"nothing": (0.75, 0.75), "the right kind": (0.9, 0.6), "the wrong kind": (0.6, 0.9)}


@pytest.mark.parametrize("expected", EXPECTED.values(), ids=list(EXPECTED))
@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_the_truth_is_inside_at_every_look(world: World, expected: tuple[float, float]) -> None:
    """Whatever was predicted before the labels, right or wrong."""
    is_inside = np.ones(200, dtype=np.bool_)
    for requests, foreseen, groups, satisfied in looks(
        replace(world, expected=expected), 200, 3000, 300, seed=3
    ):
        found = bounds(requests, foreseen, groups, 0.95)
        truth = satisfied / requests
        is_inside &= (found.low <= truth + 1e-12) & (truth <= found.high + 1e-12)

    assert is_inside.mean() >= 0.95


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_better_predictions_make_it_narrower(world: World) -> None:
    widths = []
    for expected in EXPECTED.values():
        foreseen = replace(world, apart=0.18, expected=expected)
        *_, (requests, sums, groups, _) = looks(foreseen, 50, 3000, 300, seed=3)
        found = bounds(requests, sums, groups, 0.95)
        widths.append(float((found.high - found.low).mean()))
    nothing, right, wrong = widths

    assert right < nothing < wrong


def test_uncorrected_answers_of_the_unsatisfied_are_wrong_and_weights_put_them_right() -> None:
    """The reason for the audit, and for `response_bias`."""
    world = World(answers=(0.6, 0.2))
    *_, (requests, expected, groups, satisfied) = looks(world, 200, 3000, 300, seed=3)
    truth = satisfied / requests
    weighed = [replace(each, weight=1.5 if each.word == 1.0 else 0.5) for each in groups]
    plain, right = (bounds(requests, expected, each, 0.95) for each in (groups, weighed))

    assert (truth <= plain.high).mean() < 0.05
    assert ((right.low <= truth) & (truth <= right.high)).mean() >= 0.95


def test_a_judge_that_errs_is_corrected_unless_it_is_trusted() -> None:
    world = World(rate=0.9, answers=(0.5, 0.5), graded=0.5, errors=0.2, apart=0.1)
    *_, (requests, expected, groups, satisfied) = looks(world, 200, 4000, 400, seed=3)
    truth = satisfied / requests
    corrected = bounds(requests, expected, groups, 0.95)
    trusted = bounds(requests, expected, groups, 0.95, trust_judge=True)

    assert corrected.rate.mean() == pytest.approx(0.9, abs=0.01)
    assert ((corrected.low <= truth) & (truth <= corrected.high)).mean() >= 0.95
    assert (trusted.high < truth).mean() > 0.9


def test_where_everybody_spoke_the_share_is_known() -> None:
    groups = [LabelGroup(vector(80.0), 1.0, None, 0.9), LabelGroup(vector(20.0), 0.0, None, 0.9)]
    found = bounds(vector(100.0), vector(90.0), groups, 0.95)

    assert found.low == found.rate == found.high == pytest.approx(0.8)


def test_scores_between_0_and_1_count_as_they_are() -> None:
    found = bounds(vector(10.0), vector(9.0), [LabelGroup(vector(10.0), 0.25, None, 0.9)], 0.95)

    assert found.low == found.high == pytest.approx(0.25)


def test_labels_are_never_taken_back() -> None:
    """Of 100 requests 30 were satisfied and 10 not: whatever the others were."""
    groups = [LabelGroup(vector(30.0), 1.0, None, 0.2), LabelGroup(vector(10.0), 0.0, None, 0.2)]
    found = bounds(vector(100.0), vector(20.0), groups, 0.99)

    assert found.low[0] >= 0.3
    assert found.high[0] <= 0.9


@pytest.mark.parametrize("requests", [1.0, 10.0, 1e7])
def test_without_a_label_nothing_is_known(requests: float) -> None:
    found = bounds(vector(requests), vector(0.8 * requests), [], 0.95)

    assert (found.low[0], found.high[0]) == (0.0, 1.0)


def test_with_a_word_and_no_pair_nothing_is_known_of_the_silent() -> None:
    """A judge that no user can be compared with is not corrected by chance."""
    groups = [LabelGroup(vector(1.0), 1.0, None, 0.8), LabelGroup(vector(50.0), None, 1.0, 0.8)]
    found = bounds(vector(101.0), vector(80.8), groups, 0.95)

    assert found.low[0] == pytest.approx(1 / 101)
    assert found.high[0] == pytest.approx(1.0)


def test_how_the_labels_came_about_is_seen_in_them() -> None:
    judged = LabelGroup(vector(1.0), None, 1.0, 0.8)
    drawn = LabelGroup(vector(1.0), 1.0, None, 0.8, probability=0.1)
    answered = LabelGroup(vector(1.0), 1.0, None, 0.8)

    assert sampling_of([answered, drawn, judged]) is Sampling.JUDGE
    assert sampling_of([answered, drawn]) is Sampling.DRAWS
    assert sampling_of([answered]) is sampling_of([]) is Sampling.ANSWERS


def test_labels_of_several_known_probabilities_are_weighed_by_them() -> None:
    """Doubtful requests were asked about ten times as often, and satisfied half as often."""
    generator = np.random.default_rng(4)
    deployments, each = 400, 3000
    rates, likely = (0.9, 0.45), (0.05, 0.5)
    satisfied, groups = np.zeros(deployments), []
    for rate, probability in zip(rates, likely, strict=True):
        truth = generator.random((deployments, each)) < rate
        is_drawn = generator.random((deployments, each)) < probability
        satisfied += truth.sum(axis=1)
        for value in (0.0, 1.0):
            count = ((truth == value) & is_drawn).sum(axis=1).astype(float)
            groups.append(LabelGroup(count, value, None, 0.7, probability=probability))
    requests = np.full(deployments, 2.0 * each)
    found = bounds(requests, 0.7 * requests, groups, 0.95)
    truth_share = satisfied / requests

    assert found.rate.mean() == pytest.approx(0.675, abs=0.005)
    assert ((found.low <= truth_share) & (truth_share <= found.high)).mean() >= 0.95
