"""Several labels on one call, one verdict: the label that counts.

Labels of any number of sources may lie on a call, and all of them stay in the log. Which one
counts is a rule, so another rule is another fold of the same log. The view `verdicts` is this rule
in SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litellm_messplus.label_kind import PRECEDENCE, LabelKind
from litellm_messplus.prediction.label import Label


class Given(NamedTuple):
    """A label as its source gave it."""

    kind: LabelKind
    source: str
    value: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """The kinds that count, the strongest first; of one kind the lowest value counts, for an answer
    must pass every check. A source's newest label replaces its earlier ones, and one of weight 0 is
    kept in the log alone.
    """

    precedence: tuple[LabelKind, ...] = PRECEDENCE

    def verdict(self, given: Sequence[Given]) -> Label | None:
        """What counts of the labels on one call, in the order of the log; None where nothing does.

        More labels never take a verdict away, they only change it.
        """
        newest = {label.source: label for label in given if label.weight > 0.0}
        counting = [label for label in newest.values() if label.kind in self.precedence]
        if not counting:
            return None
        strongest = min(counting, key=self._order)
        return Label(strongest.value, strongest.weight)

    def _order(self, label: Given) -> tuple[int, float]:
        return self.precedence.index(label.kind), label.value
