"""The heads learn by exactly the SGD that the paper ran."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.head import Label, LinearHeads
from tests.support.builders import LARGE, MEDIUM, SMALL, pair

NAMES = (SMALL, MEDIUM, LARGE)
FEATURES = pair(1.0, -0.5)

numbers = st.floats(-3.0, 3.0, width=32)
steps = st.lists(
    st.tuples(numbers, numbers, st.sampled_from(NAMES), st.floats(0.0, 1.0)), max_size=30
)


def build(
    names: tuple[str, ...] = NAMES,
    dimension: int = 2,
    learning_rate: float = 0.1,
    momentum: float = 0.9,
    weight_decay: float = 0.01,
) -> LinearHeads:
    return LinearHeads(
        names,
        dimension,
        learning_rate=learning_rate,
        momentum=momentum,
        weight_decay=weight_decay,
    )


def probability(heads: LinearHeads, name: str, features: Features = FEATURES) -> float:
    (predicted,) = heads.predict(features, [name])
    return predicted


def test_knowing_nothing_every_probability_is_one_half() -> None:
    assert build().predict(FEATURES, NAMES) == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(("satisfaction", "sign"), [(1.0, 1), (0.0, -1)])
def test_learning_moves_the_prediction_towards_the_label(satisfaction: float, sign: int) -> None:
    heads = build()
    heads.learn(FEATURES, {LARGE: Label(satisfaction)})
    assert sign * (probability(heads, LARGE) - 0.5) > 0


def test_a_label_of_one_half_is_between_the_two() -> None:
    heads = build()
    heads.learn(FEATURES, {LARGE: Label(0.5)})
    assert probability(heads, LARGE) == 0.5


def test_many_labels_are_learned() -> None:
    heads = build(learning_rate=0.5, momentum=0.5, weight_decay=0.0)
    for _ in range(300):
        heads.learn(pair(1.0, 0.0), {SMALL: Label(1.0)})
        heads.learn(pair(0.0, 1.0), {SMALL: Label(0.0)})
    assert probability(heads, SMALL, pair(1.0, 0.0)) > 0.95
    assert probability(heads, SMALL, pair(0.0, 1.0)) < 0.05


@given(steps, st.sampled_from(NAMES))
def test_a_missing_label_leaves_that_head_alone_bit_for_bit(
    before: list[tuple[float, float, str, float]], unlabelled: str
) -> None:
    heads = build()
    for first, second, name, satisfaction in before:
        heads.learn(pair(first, second), {name: Label(satisfaction)})
    row = NAMES.index(unlabelled)
    kept = heads.weights[row].tobytes(), heads.velocity[row].tobytes()
    for name in NAMES:
        if name != unlabelled:
            heads.learn(FEATURES, {name: Label(1.0)})
            heads.revise(FEATURES, name, Label(1.0), Label(0.0))
    assert (heads.weights[row].tobytes(), heads.velocity[row].tobytes()) == kept


@given(steps)
def test_probabilities_stay_probabilities(
    learned: list[tuple[float, float, str, float]],
) -> None:
    heads = build(learning_rate=50.0)
    for first, second, name, satisfaction in learned:
        heads.learn(pair(first, second), {name: Label(satisfaction)})
    predicted = heads.predict(pair(1e6, -1e6), NAMES)
    assert all(0.0 <= each <= 1.0 for each in predicted)


def test_predictions_come_in_the_order_asked_for() -> None:
    heads = build()
    heads.learn(FEATURES, {LARGE: Label(1.0)})
    heads.learn(FEATURES, {SMALL: Label(0.0)})
    small, large = heads.predict(FEATURES, [SMALL, LARGE])
    assert heads.predict(FEATURES, [LARGE, SMALL]) == [large, small]
    assert small < 0.5 < large


def test_a_candidate_without_a_head_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        build().predict(FEATURES, ["gone"])


@given(steps, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_revising_at_once_equals_having_learned_the_other_label(
    before: list[tuple[float, float, str, float]], wrong: float, right: float
) -> None:
    """Without momentum or decay, exactly: the gradient is linear in the label."""
    revised = build(momentum=0.0, weight_decay=0.0)
    direct = build(momentum=0.0, weight_decay=0.0)
    for first, second, name, satisfaction in before:
        revised.learn(pair(first, second), {name: Label(satisfaction)})
        direct.learn(pair(first, second), {name: Label(satisfaction)})
    revised.learn(FEATURES, {LARGE: Label(wrong)})
    revised.revise(FEATURES, LARGE, Label(wrong), Label(right))
    direct.learn(FEATURES, {LARGE: Label(right)})
    np.testing.assert_allclose(revised.weights, direct.weights, rtol=0, atol=1e-12)


def test_a_late_revision_is_off_only_in_second_order_of_the_learning_rate() -> None:
    """Ten times smaller steps: the error shrinks a hundredfold, a first-order one tenfold."""

    def error(learning_rate: float) -> float:
        revised = build(learning_rate=learning_rate, momentum=0.0)
        direct = build(learning_rate=learning_rate, momentum=0.0)
        revised.learn(FEATURES, {LARGE: Label(0.0)})
        direct.learn(FEATURES, {LARGE: Label(1.0)})
        for heads in (revised, direct):
            heads.learn(pair(0.5, 2.0), {LARGE: Label(1.0)})
        revised.revise(FEATURES, LARGE, Label(0.0), Label(1.0))
        return float(np.abs(revised.weights - direct.weights).max())

    assert 0 < error(0.001) < error(0.01) / 50


def test_step_by_step_it_is_torch_sgd_on_the_regularised_cross_entropy() -> None:
    """The paper's F with all M labels: mean binary cross-entropy, and mu/2 of the squared norm."""
    random = np.random.default_rng(3)
    dimension, learning_rate, momentum, weight_decay = 5, 0.06, 0.9, 0.01
    heads = build(NAMES, dimension, learning_rate, momentum, weight_decay)
    layer = torch.nn.Linear(dimension, len(NAMES), dtype=torch.float64)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    optimiser = torch.optim.SGD(
        layer.parameters(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay
    )
    for _ in range(200):
        features = random.normal(size=dimension).astype(np.float32)
        labels = random.integers(0, 2, size=len(NAMES)).astype(float)

        optimiser.zero_grad()
        logits = layer(torch.tensor(features, dtype=torch.float64))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, torch.tensor(labels), reduction="mean"
        )
        torch.autograd.backward([loss])
        optimiser.step()
        for name, satisfaction in zip(NAMES, labels, strict=True):
            heads.learn(features, {name: Label(float(satisfaction))})

        theirs = np.column_stack([layer.weight.detach().numpy(), layer.bias.detach().numpy()])
        np.testing.assert_allclose(heads.weights, theirs, rtol=0, atol=1e-12)
    assert np.abs(heads.weights).max() > 0.05
