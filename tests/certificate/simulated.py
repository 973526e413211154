"""Deployments of which the truth is known: the labels of their requests, look after look."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.certificate.evidence import LabelGroup
from litellm_messplus.certificate.sequence import Vector

NUMBERS: dict[float | None, int] = {0.0: 0, 1.0: 1, None: 2}
LABELS = tuple(product(NUMBERS, NUMBERS))
"""The labels that a user, and a judge, may give."""


@dataclass(frozen=True)
class World:
    """``rate`` is the share satisfied; ``answers`` how likely an unsatisfied and a satisfied user
    answers; ``graded`` how likely the judge grades, and ``errors`` how often it is wrong.
    ``drawn`` is the probability in the log, where users are asked by draws. Half of the requests
    are satisfied more often, the others less often, by ``apart``; ``expected`` is what was expected
    of both kinds before any label."""

    rate: float = 0.8
    answers: tuple[float, float] = (0.0, 0.0)
    graded: float = 0.0
    errors: float = 0.0
    drawn: float | None = None
    apart: float = 0.15
    expected: tuple[float, float] = (0.75, 0.75)


class Look(NamedTuple):
    """The number of requests so far, of those expected to be satisfied, their labels, and the
    number of satisfied ones."""

    requests: Vector
    expected: Vector
    groups: list[LabelGroup]
    satisfied: Vector


def looks(world: World, deployments: int, requests: int, every: int, seed: int) -> Iterator[Look]:
    """The deployments at every look."""
    generator = np.random.default_rng(seed)
    counts = np.zeros((2, len(LABELS), deployments))
    satisfied, expected = np.zeros((2, deployments))
    for look in range(requests // every):
        is_easy = generator.random((deployments, every)) < 0.5
        rate = world.rate + np.where(is_easy, world.apart, -world.apart)
        truth = generator.random((deployments, every)) < rate
        word, grade = _labels(world, truth, generator)
        satisfied += truth.sum(axis=1)
        expected += np.where(is_easy, *world.expected).sum(axis=1)
        for kind, is_kind in enumerate((is_easy, ~is_easy)):
            counts[kind] += [
                (is_kind & (word == NUMBERS[labels[0]]) & (grade == NUMBERS[labels[1]])).sum(axis=1)
                for labels in LABELS
            ]
        groups = [
            LabelGroup(counts[kind][place].copy(), *labels, foreseen, probability=world.drawn)
            for kind, foreseen in enumerate(world.expected)
            for place, labels in enumerate(LABELS)
            if labels != (None, None) and (world.graded > 0.0 or labels[1] is None)
        ]
        so_far = np.full(deployments, float((look + 1) * every))
        yield Look(so_far, expected.copy(), groups, satisfied.copy())


def _labels(
    world: World, truth: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """0 and 1, and 2 without a label."""
    answers, graded, errs = generator.random((3, *truth.shape))
    word = np.where(answers < np.where(truth, world.answers[1], world.answers[0]), truth, 2)
    grade = np.where(graded < world.graded, truth ^ (errs < world.errors), 2)
    return word.astype(np.int_), grade.astype(np.int_)
