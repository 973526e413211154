"""The paper's predictor learns by torch's SGD, the same way each time the log is folded."""

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from litellm_messplus.core import neural_heads as module
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.head import Label
from litellm_messplus.core.neural_heads import NeuralHeads
from tests.support.builders import LARGE, MEDIUM, SMALL

NAMES = (SMALL, MEDIUM, LARGE)
DIMENSION = 12


def build(
    names: tuple[str, ...] = NAMES, dimension: int = DIMENSION, **changed: Any
) -> NeuralHeads:
    settings = {"learning_rate": 0.06, "momentum": 0.9, "weight_decay": 0.01, **changed}
    return NeuralHeads(names, dimension, **settings)


def prompt(number: int, dimension: int = DIMENSION) -> Features:
    return np.random.default_rng(number).normal(size=dimension).astype(np.float32)


def bits(heads: NeuralHeads) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in heads.arrays().items()}


def reference(heads: NeuralHeads, hidden: int = module.HIDDEN) -> nn.Sequential:
    """The paper's layers in torch's own classes, where the heads are now."""
    network = nn.Sequential(
        nn.Dropout(module.DROPOUT),
        nn.Linear(heads.dimension, hidden),
        nn.LayerNorm(hidden),
        nn.ReLU(),
        nn.Dropout(module.DROPOUT),
        nn.Linear(hidden, len(heads.candidates)),
    )
    arrays = heads.arrays()
    rows = range(len(heads.candidates))
    given = {
        "1.weight": arrays["shared.1.weight"],
        "1.bias": arrays["shared.1.bias"],
        "2.weight": arrays["shared.2.weight"],
        "2.bias": arrays["shared.2.bias"],
        "5.weight": np.concatenate([arrays[f"row.{row}.weight"] for row in rows]),
        "5.bias": np.concatenate([arrays[f"row.{row}.bias"] for row in rows]),
    }
    network.load_state_dict({name: torch.tensor(array) for name, array in given.items()})
    return network


def test_step_by_step_it_is_torch_sgd_on_eq_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one candidate, exactly, momentum and decay included."""
    monkeypatch.setattr(module, "DROPOUT", 0.0)
    heads = build((SMALL,))
    assert heads.predict(prompt(0), [SMALL]) == [0.5]
    network = reference(heads)
    sgd = torch.optim.SGD(network.parameters(), lr=0.06, momentum=0.9, weight_decay=0.01)
    for number in range(100):
        satisfaction = float(number % 3 == 0)
        heads.learn(prompt(number), {SMALL: Label(satisfaction)})
        sgd.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(
            network(torch.tensor(prompt(number))), torch.tensor([satisfaction])
        )
        torch.autograd.backward([loss])
        sgd.step()
    theirs = torch.sigmoid(network(torch.tensor(prompt(7)))).tolist()
    assert heads.predict(prompt(7), [SMALL]) == pytest.approx(theirs, abs=1e-4)
    assert abs(theirs[0] - 0.5) > 0.05


def test_labels_of_all_candidates_make_the_step_of_eq_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own step on the mean over all M, and weight decay on everything."""
    monkeypatch.setattr(module, "DROPOUT", 0.0)
    heads = build(learning_rate=0.1, momentum=0.0, weight_decay=0.5)
    for number in range(10):  # away from the start, where the rows are zero
        heads.learn(prompt(number), {NAMES[number % 3]: Label(1.0)})
    network = reference(heads)
    sgd = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.5)
    loss = nn.functional.binary_cross_entropy_with_logits(
        network(torch.tensor(prompt(50))), torch.tensor([0.0, 1.0, 1.0])
    )
    torch.autograd.backward([loss])
    sgd.step()

    wanted = zip(NAMES, (0.0, 1.0, 1.0), strict=True)
    heads.learn(prompt(50), {name: Label(satisfaction) for name, satisfaction in wanted})

    after = dict(reference(heads).named_parameters())
    fresh = build(learning_rate=0.1, momentum=0.0, weight_decay=0.5)
    before = fresh.arrays()["shared.1.weight"].copy()
    fresh.learn(prompt(0), {SMALL: Label(0.5)})  # as was predicted: it decays, by its share, alone
    shrunk = before * (1.0 - 0.1 * 0.5 / len(NAMES))
    assert fresh.arrays()["shared.1.weight"] == pytest.approx(shrunk)
    for name, parameter in network.named_parameters():
        assert torch.allclose(parameter, after[name], atol=1e-6), name


def test_masks_change_each_step_at_the_papers_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without decay and momentum, a feature that was dropped leaves its column as it was."""
    heads = build(dimension=400, momentum=0.0, weight_decay=0.0)
    heads.learn(np.ones(400, dtype=np.float32), {SMALL: Label(1.0)})  # the rows are zero until then
    dropped = []
    for _ in range(20):
        before = heads.arrays()["shared.1.weight"].copy()
        heads.learn(np.ones(400, dtype=np.float32), {SMALL: Label(1.0)})
        dropped.append((heads.arrays()["shared.1.weight"] == before).all(axis=0))
    assert np.mean(dropped) == pytest.approx(0.1, abs=0.02)
    assert len({mask.tobytes() for mask in dropped}) == 20


def test_it_computes_in_one_thread_and_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers with other settings fold the same log; the event loop waits, and cores may be
    busy."""
    watched: list[int] = []
    forward, before, found = nn.LayerNorm.forward, torch.get_num_threads(), {}

    def watching(self: nn.LayerNorm, given: torch.Tensor) -> torch.Tensor:
        watched.append(torch.get_num_threads())
        return forward(self, given)

    monkeypatch.setattr(nn.LayerNorm, "forward", watching)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            heads = build(dimension=768)
            for number in range(12):
                heads.learn(prompt(number, 768), {NAMES[number % 3]: Label(float(number % 2))})
            heads.predict(prompt(1, 768), NAMES)
            heads.revise(prompt(1, 768), SMALL, Label(1.0), Label(0.0))
            found[threads] = bits(heads)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert found[1] == found[2]
    assert set(watched) == {1}


def test_what_dropout_keeps_makes_up_for_what_it_drops() -> None:
    """A step on a constant layer: the candidate's row moves by 1 / 0.9 of it, or not at all."""
    heads = build(momentum=0.0, weight_decay=0.0, learning_rate=1.0)
    layer = heads.arrays()
    layer["shared.2.weight"][:] = 0.0
    layer["shared.2.bias"][:] = 1.0  # behind the norm and ReLU, ones
    heads.learn(prompt(0), {SMALL: Label(1.0)})
    row = heads.own(SMALL)["row.0.weight"].ravel()
    step = 0.5 / len(NAMES) / (1.0 - module.DROPOUT)
    assert set(np.round(row / np.float32(step), 5)) == {0.0, 1.0}


def test_learning_in_another_thread_is_the_same() -> None:
    """A start restores in one thread what the event loop goes on with in another."""
    here, there = build(), build()

    def learn(heads: NeuralHeads) -> None:
        for number in range(9):
            heads.learn(prompt(number), {NAMES[number % 3]: Label(1.0)})

    learn(here)
    thread = threading.Thread(target=learn, args=[there])
    thread.start()
    thread.join()
    assert bits(here) == bits(there)


def test_a_revision_at_once_is_the_other_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DROPOUT", 0.0)

    def error(learning_rate: float) -> float:
        revised = build(learning_rate=learning_rate, momentum=0.0)
        direct = build(learning_rate=learning_rate, momentum=0.0)
        for heads in (revised, direct):
            for number in range(10):
                heads.learn(prompt(number), {LARGE: Label(1.0)})
        revised.learn(prompt(20), {LARGE: Label(0.0)})
        revised.revise(prompt(20), LARGE, Label(0.0), Label(1.0))
        direct.learn(prompt(20), {LARGE: Label(1.0)})
        (one,), (other,) = (heads.predict(prompt(20), [LARGE]) for heads in (revised, direct))
        return abs(one - other)

    assert error(0.003) < error(0.3) / 100


def test_heads_of_other_candidates_or_width_are_refused_and_nothing_is_taken() -> None:
    heads = build()
    before = bits(heads)
    for other in (build((SMALL, LARGE)), build(dimension=5), build(hidden=8)):
        other.learn(prompt(0, other.dimension), {SMALL: Label(1.0)})
        with pytest.raises((ValueError, KeyError)):
            heads.load(other.arrays())
        assert bits(heads) == before
