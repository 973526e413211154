"""Deployments of which the truth is known: what was said of their requests, look after look."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.certificate.evidence import Heard
from litellm_messplus.certificate.sequence import Vector

NUMBERS: dict[float | None, int] = {0.0: 0, 1.0: 1, None: 2}
SAID = tuple(product(NUMBERS, NUMBERS))
"""What a user, and what a judge, may say."""


@dataclass(frozen=True)
class World:
    """``rate`` is the share satisfied; ``answers`` how likely an unsatisfied and a satisfied user
    answers; ``graded`` how likely the judge grades, and ``errors`` how often it is wrong.
    ``drawn`` is the probability in the log, where users are asked by draws."""

    rate: float = 0.8
    answers: tuple[float, float] = (0.0, 0.0)
    graded: float = 0.0
    errors: float = 0.0
    drawn: float | None = None


def looks(
    world: World, deployments: int, requests: int, every: int, seed: int
) -> Iterator[tuple[Vector, list[Heard], Vector]]:
    """The number of requests so far, what was said of them, and how many were satisfied."""
    generator = np.random.default_rng(seed)
    counts = np.zeros((len(SAID), deployments))
    satisfied = np.zeros(deployments)
    for look in range(requests // every):
        truth = generator.random((deployments, every)) < world.rate
        word, grade = _said(world, truth, generator)
        satisfied += truth.sum(axis=1)
        counts += [
            ((word == NUMBERS[said[0]]) & (grade == NUMBERS[said[1]])).sum(axis=1) for said in SAID
        ]
        heard = [
            Heard(count.copy(), said[0], said[1], probability=world.drawn)
            for count, said in zip(counts, SAID, strict=True)
            if said != (None, None) and (world.graded > 0.0 or said[1] is None)
        ]
        yield np.full(deployments, float((look + 1) * every)), heard, satisfied.copy()


def _said(
    world: World, truth: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """0 and 1, and 2 where nothing was said."""
    answers, graded, errs = generator.random((3, *truth.shape))
    word = np.where(answers < np.where(truth, world.answers[1], world.answers[0]), truth, 2)
    grade = np.where(graded < world.graded, truth ^ (errs < world.errors), 2)
    return word.astype(np.int_), grade.astype(np.int_)
