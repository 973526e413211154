"""Simulated users: only some say whether an answer satisfied, the unsatisfied more often."""

import random
from dataclasses import dataclass

BIAS = 3.0
"""How many times as often unsatisfied users answer as satisfied ones."""
SATISFIED = 0.8
"""The share of satisfied users at which ``share`` of all answer: the alpha of the demo's zoos."""


@dataclass(frozen=True, slots=True)
class SimulatedCrowd:
    """``share`` of all users answer, greater than 0 and at most 1.

    From a share of 0.47 on unsatisfied users always answer, and the bias is less than ``BIAS``; at
    1 everybody does, and there is none.
    """

    share: float
    seed: int = 0

    def answer_shares(self) -> tuple[float, float]:
        """How likely a satisfied and an unsatisfied user answer."""
        satisfied = self.share / (SATISFIED + BIAS * (1.0 - SATISFIED))
        unsatisfied = min(1.0, BIAS * satisfied)
        return (self.share - (1.0 - SATISFIED) * unsatisfied) / SATISFIED, unsatisfied

    def answers(self, number: int, satisfied: bool) -> bool:
        """Whether the user of that request says anything; equal seeds give equal draws, in
        whichever order requests end."""
        if_satisfied, if_unsatisfied = self.answer_shares()
        draw = random.Random(f"{self.seed} {number}").random()
        return draw < (if_satisfied if satisfied else if_unsatisfied)
