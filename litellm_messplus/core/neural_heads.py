"""The paper's predictor on frozen features: dropout, linear, layer norm, ReLU, dropout, linear,
sigmoid, trained online by SGD with momentum and weight decay (paper, Appendix and Eq. 4).

The only module of this room that imports torch: import it only to build such heads.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.head import Arrays, Label, checked, fill

HIDDEN = 256
"""Width of the hidden layer. The paper does not state it; the authors' code uses the encoder's own
(768 for ModernBERT-base), with which a step takes seven times as long, 2.9 ms of the event loop,
and a snapshot has 4.7 MB instead of 1.6."""
DROPOUT = 0.1
SEED = 20250527
LARGEST = 1e6
"""Magnitude to which a feature is clipped: the sum of squares must fit in float32."""


class NeuralHeads:
    """Shared layers, and a row of the last linear layer for each candidate.

    A step on labels of all M candidates descends Eq. 4. Missing labels are masked: the loss is the
    sum of the others' cross-entropies / M, and weight decay applies to their rows and to their
    share of the shared layers (after a label of every candidate, all have decayed once). The rows
    without a label stay as they are, momentum included; their predictions move with the shared
    layers.

    The rows start at zero, where every prediction is one half. The shared layers, and the masks of
    step n, are drawn from seeds: folding a log again gives the same heads.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        dimension: int,
        *,
        learning_rate: float,
        momentum: float,
        weight_decay: float,
        hidden: int = HIDDEN,
    ) -> None:
        self.candidates = tuple(candidates)
        self.dimension = dimension
        self._weight_decay = weight_decay
        self._hidden = hidden
        self._row = {name: row for row, name in enumerate(self.candidates)}
        self._steps = np.zeros(1, dtype=np.int64)
        self._masks = torch.Generator()
        self._shared = nn.Sequential(
            _SeededDropout(self._masks),
            _seeded_linear(dimension, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            _SeededDropout(self._masks),
        ).eval()
        self._rows = [_zero_row(hidden) for _ in self.candidates]
        rows = [parameter for row in self._rows for parameter in row.parameters()]
        self._sgd = torch.optim.SGD(
            [{"params": list(self._shared.parameters())}, {"params": rows}],
            lr=learning_rate,
            momentum=momentum,
        )
        for parameter in (*self._shared.parameters(), *rows):
            self._sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        """Predict the probability of satisfaction of each named candidate, in the order given;
        without dropout.

        Raises KeyError for a candidate without a head, ValueError for features that are not
        ``dimension`` finite numbers.
        """
        rows = [self._rows[self._row[name]] for name in candidates]
        with _one_thread(), torch.inference_mode():
            hidden = self._shared(self._tensor(features))
            return [torch.sigmoid(row(hidden)).item() for row in rows]

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        """Take one SGD step on a prompt's labels, with missing ones masked. Raises as ``predict``
        does."""
        with _one_thread():
            logits = self._logits_in_training(features, list(labels))
            losses = map(_cross_entropy, logits, labels.values())
            self._descend(torch.stack(list(losses)).sum(), self._weight_decay, len(labels))

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before.

        A step cannot be undone once others have followed. This one follows the difference in loss
        between the two labels, under a mask of its own and without decay: correct to first order
        in the learning rate, on average over the masks.
        """
        with _one_thread():
            (logit,) = self._logits_in_training(features, [candidate])
            difference = _cross_entropy(logit, label) - _cross_entropy(logit, previous)
            self._descend(difference, 0.0, 1)

    def add(self, candidate: str) -> None:
        """Add a candidate whose row starts at zero, after the others."""
        row = _zero_row(self._hidden)
        self._rows.append(row)
        for parameter in row.parameters():
            self._sgd.param_groups[1]["params"].append(parameter)
            self._sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self._name((*self.candidates, candidate))

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those after it move up."""
        row = self._rows.pop(self._row[candidate])
        gone = {id(parameter) for parameter in row.parameters()}
        group = self._sgd.param_groups[1]
        group["params"] = [each for each in group["params"] if id(each) not in gone]
        for parameter in row.parameters():
            del self._sgd.state[parameter]
        self._name(tuple(name for name in self.candidates if name != candidate))

    def _name(self, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        self._row = {name: row for row, name in enumerate(candidates)}

    def own(self, candidate: str) -> Arrays:
        """Return the candidate's row, and its momentum."""
        return self._arrays_of(f"row.{self._row[candidate]}", self._rows[self._row[candidate]])

    def arrays(self) -> Arrays:
        """Return parameters and momentum in float32, and the number of steps; they share memory."""
        arrays = {"steps": self._steps, **self._arrays_of("shared", self._shared)}
        for name in self.candidates:
            arrays |= self.own(name)
        return arrays

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly where such heads were. Raises KeyError or ValueError if they do not
        fit."""
        fill(self.arrays(), arrays)

    def _arrays_of(self, prefix: str, module: nn.Module) -> Arrays:
        arrays: Arrays = {}
        for name, parameter in module.named_parameters():
            velocity: Tensor = self._sgd.state[parameter]["momentum_buffer"]
            arrays[f"{prefix}.{name}"] = parameter.detach().numpy()
            arrays[f"{prefix}.{name}.velocity"] = velocity.numpy()
        return arrays

    def _tensor(self, features: Features) -> Tensor:
        given = torch.tensor(checked(features, self.dimension), dtype=torch.float32)
        return given.clamp_(-LARGEST, LARGEST)

    def _logits_in_training(self, features: Features, candidates: Sequence[str]) -> list[Tensor]:
        rows = [self._rows[self._row[name]] for name in candidates]
        given = self._tensor(features)
        self._masks.manual_seed(int(self._steps[0]))
        self._shared.train()
        hidden = self._shared(given)
        self._shared.eval()
        return [row(hidden) for row in rows]

    def _descend(self, loss: Tensor, decay: float, labels: int) -> None:
        shared, rows = self._sgd.param_groups
        shared["weight_decay"] = decay * labels / len(self.candidates)
        rows["weight_decay"] = decay
        self._sgd.zero_grad()  # to None: SGD skips the rows that get no gradient
        torch.autograd.backward([loss / len(self.candidates)])
        self._sgd.step()
        self._steps += 1


class _SeededDropout(nn.Module):
    """Dropout with masks from its own generator, so that no other draw changes them."""

    def __init__(self, masks: torch.Generator) -> None:
        super().__init__()
        self._masks = masks

    def forward(self, values: Tensor) -> Tensor:
        if not self.training:
            return values
        kept = torch.rand(values.shape, generator=self._masks) >= DROPOUT
        return values * kept / (1.0 - DROPOUT)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: on busy cores, handing work this small to other threads takes up to
    100 ms; and sums come out the same for any number of threads. Threads that already run, as an
    encoder's, keep their own setting."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _seeded_linear(dimension: int, width: int) -> nn.Linear:
    """Draw a layer's weights as torch does, uniform within 1 / sqrt(dimension)."""
    layer = nn.Linear(dimension, width)
    draws, bound = torch.Generator().manual_seed(SEED), 1.0 / math.sqrt(dimension)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=draws)
    return layer


def _zero_row(width: int) -> nn.Linear:
    row = nn.Linear(width, 1)
    for parameter in row.parameters():
        nn.init.zeros_(parameter)
    return row


def _cross_entropy(logit: Tensor, label: Label) -> Tensor:
    wanted = torch.full_like(logit, label.value)
    return label.weight * binary_cross_entropy_with_logits(logit, wanted)
