"""What the queue aims at where the labels are not the whole truth."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing.decision import aim, label_weight

alphas = st.floats(0.01, 0.99)
noises = st.floats(0.0, 0.49)
margins = st.floats(0.0, 5.0)
counts = st.integers(0, 10**6)


@given(alphas, counts)
def test_left_alone_it_is_alpha(alpha: float, answered: int) -> None:
    assert aim(alpha, margin=0.0, answered=answered, label_noise=0.0) == pytest.approx(alpha)


@given(alphas, margins, counts, noises)
def test_it_is_a_share(alpha: float, margin: float, answered: int, noise: float) -> None:
    assert 0.0 < aim(alpha, margin=margin, answered=answered, label_noise=noise) < 1.0


@given(alphas, margins)
def test_a_margin_only_adds_and_is_gone_when_much_is_known(alpha: float, margin: float) -> None:
    aims = [aim(alpha, margin=margin, answered=n, label_noise=0.0) for n in (0, 10, 100, 10**9)]
    assert aims == sorted(aims, reverse=True)
    assert aims[-1] >= alpha - 1e-12
    assert aims[-1] == pytest.approx(alpha, abs=1e-3)


def test_under_noise_it_is_the_share_of_labels_that_alpha_shows_as() -> None:
    random = Random(0)
    truths = [random.random() < 0.8 for _ in range(40_000)]
    shown = [truth != (random.random() < 0.1) for truth in truths]
    held = aim(0.8, margin=0.0, answered=0, label_noise=0.1)
    assert held == pytest.approx(sum(shown) / len(shown), abs=0.01)


@given(st.floats(0.05, 0.95), st.floats(0.2, 5.0))
def test_weighted_labels_say_the_rate_of_all_requests(rate: float, bias: float) -> None:
    """A share r is satisfied and answers once, where the others answer ``bias`` times as often."""
    good, bad = rate * label_weight(1.0, bias), (1.0 - rate) * bias * label_weight(0.0, bias)
    assert good / (good + bad) == pytest.approx(rate)


def test_unbiased_labels_weigh_one() -> None:
    assert label_weight(0.0, 1.0) == label_weight(0.4, 1.0) == label_weight(1.0, 1.0) == 1.0
