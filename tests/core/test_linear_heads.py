"""The heads learn by exactly the SGD that the paper ran."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.head import Label, LinearHeads
from tests.support.builders import LARGE, MEDIUM, SMALL, pair

NAMES = (SMALL, MEDIUM, LARGE)
FEATURES = pair(1.0, -0.5)

numbers = st.floats(-3.0, 3.0, width=32)
steps = st.lists(
    st.tuples(numbers, numbers, st.sampled_from(NAMES), st.floats(0.0, 1.0)), max_size=30
)


def build(dimension: int = 2, **changed: float) -> LinearHeads:
    settings = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01, **changed}
    return LinearHeads(NAMES, dimension, **settings)


def test_knowing_nothing_every_probability_is_one_half() -> None:
    assert build().predict(FEATURES, NAMES) == [0.5, 0.5, 0.5]


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
    settings = {"momentum": momentum, "weight_decay": weight_decay}
    heads = build(dimension, learning_rate=learning_rate, **settings)
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
