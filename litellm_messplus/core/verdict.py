"""The only rule for which label of a call counts. The fold learns by it, and its result is stored
in `labels.counts`, which every reader goes by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from litellm_messplus.core.head import Label
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind


class Judgement(Protocol):
    """The fields of a label that the rule reads."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def weight(self) -> float: ...


AnyLabel = TypeVar("AnyLabel", bound=Judgement)


def counting(labels: Iterable[AnyLabel], precedence: Sequence[str] = PRECEDENCE) -> AnyLabel | None:
    """Choose the verdict among all labels on one answer, in log order; None if none counts.

    A source's newest label replaces its earlier ones; labels of weight 0 are ignored. Of the others
    the strongest kind counts, by ``precedence``; of one kind the lowest value, because an answer
    must pass every check; of equals the first. More labels never remove a verdict.
    """
    ranked = [each for each in newest_of_sources(labels) if each.kind in precedence]
    return min(ranked, key=lambda each: (precedence.index(each.kind), each.value), default=None)


def newest_of_sources(labels: Iterable[AnyLabel]) -> list[AnyLabel]:
    """Keep the newest label with a weight of each source, in log order."""
    found: dict[str, AnyLabel] = {}
    for each in labels:
        if each.weight > 0.0:
            found.pop(each.source, None)  # a replaced label moves to the end
            found[each.source] = each
    return list(found.values())


class Given(NamedTuple):
    """A label as its source gave it; ``probability`` is that of the draw that bought it."""

    kind: LabelKind
    source: str
    value: float
    weight: float = 1.0
    probability: float | None = None

    @property
    def label(self) -> Label:
        """The label to learn from."""
        return Label(self.value, self.weight)

    @property
    def stands_for(self) -> float:
        """The number of requests it stands for: 1 over its draw's probability, 1 without a draw."""
        return 1.0 if self.probability is None else 1.0 / self.probability


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule with the kinds that count, strongest first."""

    precedence: tuple[LabelKind, ...] = PRECEDENCE

    def verdict(self, given: Sequence[Given]) -> Label | None:
        """Return the label to learn for one call from its labels in log order; None if none
        counts."""
        found = self.counting(given)
        return None if found is None else found.label

    def counting(self, given: Sequence[Given]) -> Given | None:
        """Choose the label that is the verdict."""
        return counting(given, self.precedence)
