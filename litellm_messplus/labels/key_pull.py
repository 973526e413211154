"""Limit on how far one key may move a promise, for every label whose value a client determines.

All keys of a service level share its queue, so a key whose labels are all bad makes all requests
expensive, and one whose labels are all good makes them worse. No label shows whether its users are
hard to please or it lies. So any label of a key is accepted as long as the key moves the
satisfaction of the day by little.

Its *difference* is the sum of its labels minus that of as many labels of the others. A label counts
if it brings the difference nearer to 0, or leaves it within a limit: `CHANCE` labels, plus a share
of all labels, the larger of

- ``least``: the share that any key may move;
- half the square of its requests per request of the others: at equal traffic 0.6 % of ten keys, 3 %
  of five, 13 % of three; 50 % of two, which is no limit, as neither is the one to trust.

The difference of a key whose users are like the others' is a random walk around 0. Within two
labels on either side, it is at the limit for one label in eight, and for fewer as the limit grows.
A key that lies stays at its limit, and has moved the mean by that much, once.

No single key sets the others' mean: one that judges more often than the others weighs as if it
judged as often. Keys without labels have no part in it, and reduce no key's share. A check that
only finds faults is compared by those in the others' requests: no fault is praise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

CHANCE = 2.0
"""Labels by which a key may always differ from the others."""
ENOUGH = 3.0
"""Least labels of a mean: if the other keys have fewer, judges' labels fill up the rest, and the
key's own if those are too few. A key that is alone has no difference."""
REPRESENTS = 20.0
"""Requests of its key that a label represents: with fewer labels, the key's other requests count as
those of a key without labels."""
FAULT_FINDERS = ("check:complete", "check:json_schema")
"""Sources of labels that only report faults."""


@dataclass(frozen=True, slots=True)
class LabelContent:
    """The content of a label: satisfaction and weight. ``is_fault`` if its source reports only
    faults."""

    value: float
    weight: float
    is_fault: bool = False

    @classmethod
    def of(cls, source: str, value: float, weight: float) -> Self:
        """Return the content of a label of that source."""
        return cls(value, weight, source in FAULT_FINDERS)


@dataclass(frozen=True, slots=True)
class Tally:
    """The sum of labels: their ``weight``, and weight times satisfaction."""

    weight: float = 0.0
    satisfied: float = 0.0

    @property
    def mean(self) -> float:
        return self.satisfied / self.weight if self.weight > 0.0 else 0.0

    def plus(self, value: float, weight: float) -> "Tally":
        return Tally(self.weight + weight, self.satisfied + weight * value)


@dataclass(frozen=True, slots=True)
class KeyActivity:
    """The last day of one key: its requests, its counted labels, and the weight of the faults found
    in its answers."""

    requests: int = 0
    labels: Tally = field(default_factory=Tally)
    faults: float = 0.0

    @property
    def day_requests(self) -> float:
        """The requests of the day, at least as many as its labels: some are of earlier ones."""
        return max(float(self.requests), self.labels.weight)

    @property
    def represents(self) -> float:
        """The requests that its labels represent."""
        return min(self.day_requests, REPRESENTS * self.labels.weight)

    @property
    def weight(self) -> float:
        """The weight of its counted labels and faults."""
        return self.labels.weight + self.faults

    def after(self, content: LabelContent, replaced: LabelContent | None = None) -> "KeyActivity":
        """Return the activity with one more label, in the place of ``replaced`` if given."""
        before = self if replaced is None else self._plus(replaced, -replaced.weight)
        return before._plus(content, content.weight)

    def _plus(self, content: LabelContent, weight: float) -> "KeyActivity":
        if content.is_fault:
            faults = self.faults + weight * (1.0 - content.value)
            return KeyActivity(self.requests, self.labels, faults)
        return KeyActivity(self.requests, self.labels.plus(content.value, weight), self.faults)


@dataclass(slots=True)
class LevelActivity:
    """The last day of one promise: all its requests, the keys with labels, and judges' labels."""

    requests: int = 0
    keys: dict[str | None, KeyActivity] = field(default_factory=dict)
    judges: Tally = field(default_factory=Tally)

    def of(self, key: str | None) -> KeyActivity:
        return self.keys.get(key, KeyActivity())


def may_count(
    level: LevelActivity,
    key: str | None,
    content: LabelContent,
    replaced: LabelContent | None = None,
    *,
    least: float,
) -> bool:
    """Decide whether one more label of a key counts. ``least`` is the share by which any key may
    move the satisfaction of the day."""
    own = level.of(key)
    after = own.after(content, replaced)
    others = _Others.than(key, after, level, counts_silence=content.is_fault)
    difference = abs(others.difference(after))
    return difference <= max(abs(others.difference(own)), others.limit(after, least))


@dataclass(frozen=True, slots=True)
class _Others:
    """The other keys, with which one is compared: the mean of their labels, the faults per request,
    the weight of their labels, and the requests that those represent."""

    mean: float
    fault_rate: float
    weight: float
    represented: float

    @classmethod
    def than(
        cls, key: str | None, own: KeyActivity, level: LevelActivity, *, counts_silence: bool
    ) -> "_Others":
        others = [each for name, each in level.keys.items() if name != key]
        labelled = [each for each in others if each.labels.weight > 0.0]
        labels = sum(each.labels.weight for each in labelled)
        judged = min(max(ENOUGH - labels, 0.0), level.judges.weight)
        fill = max(ENOUGH - labels - judged, 0.0)
        parts = (
            (_fair_mean(labelled), labels),
            (level.judges.mean, judged),
            (own.labels.mean, fill if own.labels.weight > 0.0 else 0.0),
        )
        requests = max(level.requests - own.requests, 0)
        represented = sum(each.represents for each in labelled)
        silent = max(requests - represented, 0.0)
        return cls(
            mean=_mean(parts),
            fault_rate=_fault_rate(own, others, requests),
            weight=labels + judged + sum(each.faults for each in others),
            represented=represented + silent * (1.0 if counts_silence else judged / ENOUGH),
        )

    def difference(self, own: KeyActivity) -> float:
        """Compute how much more satisfied the key is than the others, in labels. Fewer faults than
        theirs are no praise."""
        faults = max(own.faults - self.fault_rate * own.day_requests, 0.0)
        return own.labels.satisfied - self.mean * own.labels.weight - faults

    def limit(self, own: KeyActivity, least: float) -> float:
        """Compute the largest difference that the key may have, in labels."""
        pull = 1.0 if self.represented <= 0.0 else (own.day_requests / self.represented) ** 2 / 2.0
        return CHANCE + max(least, pull) * (self.weight + own.weight)


def _fair_mean(keys: Sequence[KeyActivity]) -> float:
    """Return the mean of the keys' labels, in which none weighs more than if it judged as often as
    the others."""
    labels = sum(each.labels.weight for each in keys)
    requests = sum(each.day_requests for each in keys)
    parts = []
    for each in keys:
        rest = requests - each.day_requests
        rate = (labels - each.labels.weight) / rest if rest > 0.0 else 1.0
        parts.append((each.labels.mean, min(each.labels.weight, rate * each.day_requests)))
    return _mean(parts)


def _fault_rate(own: KeyActivity, others: Sequence[KeyActivity], requests: float) -> float:
    """Return the faults per request of the others, filled up as the mean is."""
    fill = max(ENOUGH - requests, 0.0)
    of_own = own.faults / own.day_requests if own.day_requests > 0.0 else own.faults
    faults = sum(each.faults for each in others) + fill * of_own
    return faults / (requests + fill)


def _mean(parts: Sequence[tuple[float, float]]) -> float:
    """Return the weighted mean of values; 0 without any."""
    weight = sum(each for _, each in parts)
    return sum(value * each for value, each in parts) / weight if weight > 0.0 else 0.0
