"""What goes wrong with labels goes wrong as often as requested."""

import numpy as np
import pytest

from litellm_messplus.replay.plan import Stress
from litellm_messplus.replay.recording import ReplayError
from litellm_messplus.replay.run import Answers, Degrade, Late, answers
from tests.support.recordings import synthetic

MODELS = ("small", "medium", "large")
MADE = synthetic(20_000)
"""Enough requests that a share is known to a hundredth: four standard errors are 0.008."""


def under(stress: Stress, seed: int = 0) -> Answers:
    return answers(MADE.satisfied, MODELS, stress, np.random.default_rng(seed))


def test_without_stress_every_call_gets_its_true_label() -> None:
    found = under(Stress())

    assert np.array_equal(found.truth, MADE.satisfied)
    assert np.array_equal(found.label, MADE.satisfied)
    assert found.is_given.all()


def test_feedback_is_the_share_that_answers() -> None:
    found = under(Stress(feedback=0.2))

    assert found.is_given.mean() == pytest.approx(0.2, abs=0.01)
    assert found.is_given[MADE.satisfied == 1.0].mean() == pytest.approx(0.2, abs=0.01)


def test_no_feedback_is_no_label() -> None:
    assert not under(Stress(feedback=0.0)).is_given.any()


@pytest.mark.parametrize(
    ("feedback", "bias", "satisfied", "unsatisfied"),
    [(0.2, 3.0, 0.2, 0.6), (1.0, 3.0, 1 / 3, 1.0), (0.5, 4.0, 0.25, 1.0), (0.8, 0.5, 0.8, 0.4)],
)
def test_bias_is_how_many_times_as_often_the_unsatisfied_answer(
    feedback: float, bias: float, satisfied: float, unsatisfied: float
) -> None:
    found = under(Stress(feedback=feedback, feedback_bias=bias))

    given = found.is_given
    assert given[MADE.satisfied == 1.0].mean() == pytest.approx(satisfied, abs=0.01)
    assert given[MADE.satisfied == 0.0].mean() == pytest.approx(unsatisfied, abs=0.01)


def test_flips_change_the_label_and_not_the_truth() -> None:
    found = under(Stress(flip=0.1))

    assert np.array_equal(found.truth, MADE.satisfied)
    assert (found.label != found.truth).mean() == pytest.approx(0.1, abs=0.01)
    assert set(np.unique(found.label)) == {0.0, 1.0}


def test_a_degraded_model_is_half_as_bad_as_the_other_from_then_on() -> None:
    found = under(Stress(degrade="large=small@0.75"))

    start = 15_000
    assert np.array_equal(found.truth[:start], MADE.satisfied[:start])
    assert np.array_equal(found.truth[:, :2], MADE.satisfied[:, :2])
    small, large = MADE.satisfied[start:, 0], MADE.satisfied[start:, 2]
    differing = small != large
    struck = found.truth[start:, 2] != large
    assert not struck[~differing].any()
    assert struck[differing].mean() == pytest.approx(0.5, abs=0.04)


def test_stress_is_seeded_and_its_parts_do_not_disturb_each_other() -> None:
    plain, both = under(Stress(feedback=0.5)), under(Stress(feedback=0.5, flip=0.3))

    assert np.array_equal(plain.is_given, both.is_given)
    assert np.array_equal(plain.is_given, under(Stress(feedback=0.5)).is_given)
    assert not np.array_equal(plain.is_given, under(Stress(feedback=0.5), seed=1).is_given)


@pytest.mark.parametrize("text", ["large=small@0.5", "large=small@.5"])
def test_degradation_is_read(text: str) -> None:
    assert Degrade.parse(text, MODELS) == Degrade("large", "small", 0.5)


def test_names_may_hold_any_sign() -> None:
    names = ("a=b", "c@d")

    assert Degrade.parse("a=b=c@d@1", names) == Degrade("a=b", "c@d", 1.0)


@pytest.mark.parametrize(
    "text", ["large", "large=small", "large=tiny@0.5", "large=small@2", "=@0.5", "large=small@x"]
)
def test_what_is_no_degradation_is_refused(text: str) -> None:
    with pytest.raises(ReplayError, match="MODEL=OTHER@START"):
        Degrade.parse(text, MODELS)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_late_label_is_there_so_many_requests_later(delay: int) -> None:
    late: Late[int] = Late(delay)
    arrivals = {}
    for request in range(10):
        arrivals[request] = list(late.due(request))
        late.add(request, request)

    assert arrivals == {
        request: [request - 1 - delay] if request > delay else [] for request in range(10)
    }
