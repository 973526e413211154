"""Which label of a call counts: the one rule. The fold learns by it, and its result is stored in
the table `verdicts`, which every reader joins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from litellm_messplus.prediction.head import Label
from litellm_messplus.runtime.vocabulary import FAILED, PRECEDENCE, LabelKind


class Judgement(Protocol):
    """A label, as far as the rule asks."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def weight(self) -> float: ...


AnyLabel = TypeVar("AnyLabel", bound=Judgement)


def counting(
    labels: Iterable[AnyLabel],
    precedence: Sequence[str] = PRECEDENCE,
    *,
    is_failed: bool = False,
) -> AnyLabel | None:
    """Choose the label that is the verdict, of all on one call in the order of the log; None where
    none counts.

    A source's newest label replaces its earlier ones, and one of weight 0 is kept in the log alone.
    Of the others the strongest kind counts, by ``precedence``; of one kind the lowest value, for an
    answer must pass every check; of equals the first. More labels never take a verdict away.

    A failed call has no answer to judge, whatever was said of it before its end or after: of its
    labels none counts but the one that says that it failed.
    """
    if is_failed:
        labels = [each for each in labels if each.source == FAILED]
    ranked = [each for each in newest_of_sources(labels) if each.kind in precedence]
    return min(ranked, key=lambda each: (precedence.index(each.kind), each.value), default=None)


def newest_of_sources(labels: Iterable[AnyLabel]) -> list[AnyLabel]:
    """Keep the newest label of each source that weighs something, in the order of the log."""
    found: dict[str, AnyLabel] = {}
    for each in labels:
        if each.weight > 0.0:
            found.pop(each.source, None)  # what comes anew comes last
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
        """The label to learn of it."""
        return Label(self.value, self.weight)

    @property
    def stands_for(self) -> float:
        """The number of requests it stands for: as many as one was drawn of, or itself alone."""
        return 1.0 if self.probability is None else 1.0 / self.probability


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule with the kinds that count, the strongest first."""

    precedence: tuple[LabelKind, ...] = PRECEDENCE

    def verdict(self, given: Sequence[Given]) -> Label | None:
        """Find what is learned of one call from its labels in the order of the log; None where none
        counts."""
        found = self.counting(given)
        return None if found is None else found.label

    def counting(self, given: Sequence[Given], *, is_failed: bool = False) -> Given | None:
        """Choose the label that is the verdict."""
        return counting(given, self.precedence, is_failed=is_failed)
