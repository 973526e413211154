"""Has a model become worse? A cumulative sum of log-likelihood ratios (Page's test).

A mean that forgets fast enough to notice a degraded model is too noisy to keep an expensive one
out. So the mean stays slow, and this test tells when it is out of date.
"""

import math
from dataclasses import dataclass

SHIFT = 0.4
"""The drop of the log-odds of satisfaction that is looked for, in nats."""
ALARM = 10.0
"""Evidence that raises the alarm, in nats. At 6, a mix of tasks, whose rates wander by themselves,
raised enough false ones to cost 6 % more."""
KNOWN = 100.0
"""Labels that a rate must rest on before it can be found out of date."""
_EDGE = 0.02


@dataclass(slots=True)
class ChangeTest:
    """``evidence`` for a drop, and the labels since it last was zero, which are all that is known
    of the model if it did drop."""

    evidence: float = 0.0
    weight: float = 0.0
    total: float = 0.0

    def add(self, label: float, weight: float, known: float, total: float, keep: float) -> bool:
        """Count a label against ``known`` ones that sum to ``total``; True on an alarm.

        The labels since the suspicion began fade by ``keep``, as those of the mean do. A suspicion
        so old that too little is known from before it is dropped.
        """
        before = known - self.weight
        if before >= KNOWN:
            self.evidence += weight * _log_ratio(label, (total - self.total) / before)
        if before < KNOWN or self.evidence <= 0.0:
            self.evidence = self.weight = self.total = 0.0
            return False
        self.weight = self.weight * keep + weight
        self.total = self.total * keep + weight * label
        return self.evidence > ALARM


def _log_ratio(label: float, rate: float) -> float:
    """How much likelier the label is after the drop than at the rate, in nats."""
    rate = min(max(rate, _EDGE), 1.0 - _EDGE)
    dropped = rate / (rate + (1.0 - rate) * math.exp(SHIFT))
    return label * math.log(dropped / rate) + (1.0 - label) * math.log(
        (1.0 - dropped) / (1.0 - rate)
    )
