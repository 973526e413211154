"""How far heads are trusted: experts that use a share of each, weighed by their predictions.

Every expert is charged its log-loss on each label before the label is known to the heads. Using a
head begins with a charge, so that one that shows nothing is never used.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.head import Label

CHARGE = 1.5
"""Initial loss of an expert, in nats, for each whole head that it uses."""
MEMORY = 500.0
"""Number of labels that the experts' discounted losses cover."""
LEAST_INFORMATION = 0.02
EDGE = 0.01
"""Least distance of a predicted probability from 0 and 1."""
_FARTHEST = 30.0
"""Log-odds beyond which nothing changes any more."""


def within(probability: float) -> float:
    """Keep a probability away from 0 and 1, where the log-odds end."""
    if probability < EDGE:
        return EDGE
    return 1.0 - EDGE if probability > 1.0 - EDGE else probability


def log_odds(probability: float) -> float:
    probability = within(probability)
    return math.log(probability / (1.0 - probability))


def logistic(log_odds: float) -> float:
    if log_odds > _FARTHEST:
        log_odds = _FARTHEST
    elif log_odds < -_FARTHEST:
        log_odds = -_FARTHEST
    return 1.0 / (1.0 + math.exp(-log_odds))


def logistics(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the logistic function of each, in any shape."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -_FARTHEST, _FARTHEST))))


class Trust:
    """The experts: ``scales`` of shape (experts, heads), the first of which uses no head.
    ``of_heads``, shape (heads,), is the share of each head that they use together. A lasting charge
    is not forgotten with the labels: heads must go on to earn it."""

    def __init__(
        self, scales: Sequence[Sequence[float]], *, is_charge_lasting: bool = False
    ) -> None:
        self.scales = np.array(scales)
        charge = CHARGE * self.scales.sum(axis=1)
        self.losses: NDArray[np.float64] = np.zeros_like(charge) if is_charge_lasting else charge
        self._lasting = charge - self.losses
        self._weigh()

    @property
    def evidence(self) -> float:
        """The nats by which the best expert beats the one that uses no head."""
        losses = self.losses + self._lasting
        return float(losses[0] - losses.min())

    def charge(self, base: float, added: NDArray[np.float64], label: Label) -> None:
        """Charge every expert its log-loss on a label; ``base`` is the prediction without heads, in
        log-odds, and ``added`` what each head adds."""
        guess = np.clip(logistics(base + self.scales @ added), EDGE, 1.0 - EDGE)
        loss = -label.value * np.log(guess) - (1.0 - label.value) * np.log(1.0 - guess)
        self.losses = self.losses * (1.0 - 1.0 / MEMORY) + label.weight * loss
        self._weigh()

    def load(self, losses: NDArray[np.float64]) -> None:
        self.losses = losses.astype(np.float64)
        self._weigh()

    def _weigh(self) -> None:
        losses = self.losses + self._lasting
        weights = np.exp(losses.min() - losses)
        self.of_heads: NDArray[np.float64] = weights @ self.scales / weights.sum()
