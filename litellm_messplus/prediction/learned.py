"""The heads' knowledge in figures that a person can check: on which prompts a model is good.

A head's weights are hard to read by themselves. So each number of the surface is moved from a low
to a high value among the recent prompts (their tenth and ninetieth percentile), and the change in
a model's log-odds is shown, with its standard deviation. Numbers are grouped into families, ordered
by how far the family spreads the predictions of recent prompts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.prediction.surface import NUMBERS, number_of_column, ramps

LOW, HIGH = 10.0, 90.0
"""Percentiles of the recent prompts between which a number is moved."""
SURE = 2.0
"""Standard deviations from which on a change is called sure."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change in a model's log-odds of satisfaction, ``nats`` with standard deviation
    ``deviation``, as a number goes from ``low`` to ``high``, which are plain counts or shares."""

    number: str
    low: float
    high: float
    nats: float
    deviation: float

    @property
    def is_sure(self) -> bool:
        return abs(self.nats) >= SURE * self.deviation


@dataclass(frozen=True, slots=True)
class Family:
    """Numbers of one kind. ``spread`` is the standard deviation, over recent prompts, of what they
    add to the log-odds together; ``changes`` has the largest first."""

    name: str
    spread: float
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class ModelView:
    """The view of one model: its mean satisfaction, how sure that is, and what moves it from prompt
    to prompt, the strongest family first. ``labels`` is the weight of the remembered labels."""

    candidate: str
    rate: float
    deviation: float
    labels: float
    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True)
class ZooView:
    """The knowledge of a zoo: ``evidence`` is the nats by which, over about the last 500 labels,
    predictions from the prompt beat the running means; ``prompts`` counts those it is shown on."""

    evidence: float
    prompts: int
    models: tuple[ModelView, ...]


def zoo_view(predictor: Predictor) -> ZooView:
    """Return what this predictor has learned; without families before the first recent prompts."""
    recent = predictor.recent
    seen = recent.numbers[: len(recent)][recent.is_seen[: len(recent)]]
    return ZooView(
        evidence=predictor.heads.evidence,
        prompts=len(seen),
        models=tuple(
            ModelView(
                name,
                predictor.rate[place],
                predictor.deviation[place],
                predictor.means[place].weight,
                _families(predictor, place, seen) if len(seen) else (),
            )
            for place, name in enumerate(predictor.candidates)
        ),
    )


def _families(predictor: Predictor, place: int, seen: NDArray[np.float32]) -> tuple[Family, ...]:
    weights, column = predictor.heads.combined.weights[place], number_of_column()
    low, high = np.percentile(seen, (LOW, HIGH), axis=0).astype(np.float32)
    step = ramps(high) - ramps(low)
    of_prompts = ramps(seen) * weights
    names = dict.fromkeys(number.family for number in NUMBERS)
    found = []
    for family in names:
        members = [index for index, number in enumerate(NUMBERS) if number.family == family]
        is_own = np.isin(column, members)
        changes = [
            Change(
                NUMBERS[index].name,
                _counted(index, float(low[index])),
                _counted(index, float(high[index])),
                float((weights * step)[column == index].sum()),
                _deviation(predictor, place, np.where(column == index, step, np.float32(0.0))),
            )
            for index in members
            if high[index] > low[index]
        ]
        if changes:
            changes.sort(key=lambda change: -abs(change.nats))
            spread = float(of_prompts[:, is_own].sum(axis=1).std())
            found.append(Family(family, spread, tuple(changes)))
    return tuple(sorted(found, key=lambda family: -family.spread))


def _deviation(predictor: Predictor, place: int, step: NDArray[np.float32]) -> float:
    """Return the standard deviation of the change over that step, weighted by trust."""
    heads, variance = predictor.heads, 0.0
    for reader, trusted in zip(
        heads.readers, heads.trust.of_heads[:-1].reshape(-1, 2), strict=True
    ):
        for belief, share in zip((reader.shared, reader.own[place]), trusted, strict=True):
            variance += float(share) ** 2 * float(step @ belief.spread(step))
    return math.sqrt(max(variance, 0.0))


def _counted(index: int, value: float) -> float:
    """Convert a logarithm back to a count; return a share as it is."""
    is_share = NUMBERS[index].name.startswith("share")
    return value if is_share else 2.0**value - 1.0
