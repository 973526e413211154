"""Does the certificate hold at every look, and how wide is it?

    python -m benchmarks.certificate [--deployments 10000] [--json]

Simulated deployments with a known truth are certified after every 100 of 10,000 requests, a
thousand a day, at 95 %. ``covered`` is the share of deployments whose truth was inside at every
look; ``width`` is the mean width of the interval at the last look, in points, and ``possible``
the width of one for a single look that knows the judge's errors, without predictions.

Each case is certified three times: expecting the promised share of every request; with a prediction
for each kind of request, learned from the labels that have come in before; and with predictions
that are the wrong way round. The program ends with status 1 if any of these covers less than 95 %.
Its figures for all cases together are those of the worst.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from litellm_messplus.certificate.evidence import LabelGroup, bounds
from litellm_messplus.certificate.sequence import Vector

LEVEL = 0.95
REQUESTS = 10_000
EVERY = 100
A_DAY = 1_000
ALPHA = 0.8
AT_ONCE = 500
"""Deployments simulated in parallel."""
BETTER = np.array((-0.3, -0.05, 0.15, 0.2))
"""Difference of each kind of request, all equally frequent, to the share satisfied."""
WEIGHT = 5.0
"""Labels that the promised share stands for in a learned prediction."""

Bits = NDArray[np.bool_]
Tenths = NDArray[np.int_]


class Expected(StrEnum):
    """The expectation of a request's satisfaction before its label."""

    PROMISED = "promised"
    PREDICTED = "predicted"
    WRONG = "wrong"


@dataclass(frozen=True)
class Case:
    """A deployment. ``answers`` are the probabilities that an unsatisfied and a satisfied
    user answer; ``graded`` that the judge grades a request, and ``errors`` that it is wrong;
    ``delay`` is the lag of any label in requests. With ``drifts``, the share satisfied falls by 15
    points for a fifth of the time, and is repaid later."""

    name: str
    answers: tuple[float, float]
    graded: float = 0.0
    errors: float = 0.0
    delay: int = 0
    drifts: bool = False
    drawn: float | None = None

    def rate(self, requests: Vector) -> Vector:
        """Compute the share satisfied at each request, by its number."""
        if not self.drifts:
            return np.full_like(requests, ALPHA)
        share = requests / REQUESTS
        return ALPHA - 0.15 * ((share > 0.3) & (share < 0.5)) + 0.1 * (share > 0.7)

    @property
    def possible(self) -> float:
        """The width in points of an ordinary interval for the last look alone, if the error rate of
        the judge is known."""
        answered = ALPHA * self.answers[1] + (1.0 - ALPHA) * self.answers[0]
        spread = ALPHA * (1.0 - ALPHA)
        if self.graded == 0.0:
            return 200.0 * 1.96 * sqrt(spread * (1.0 - answered) / (answered * REQUESTS))
        silent = ALPHA * (1.0 - self.answers[1]), (1.0 - ALPHA) * (1.0 - self.answers[0])
        share = silent[0] / sum(silent)
        graded = self.errors + (1.0 - 2.0 * self.errors) * share
        whole = sum(silent) * REQUESTS
        sampled = graded * (1.0 - graded) * (1.0 - self.graded) / (self.graded * whole)
        noise = self.errors * (1.0 - self.errors) / whole
        return 200.0 * 1.96 * sum(silent) * sqrt(sampled + noise) / (1.0 - 2.0 * self.errors)


CASES = (
    Case("2 % labels, drawn", (0.02, 0.02), drawn=0.02),
    Case("2 % labels, whoever answers", (0.02, 0.02)),
    Case("answers 3 : 1, audit of 2 %", (0.3, 0.1), graded=0.02),
    Case("answers 3 : 1, audit of 30 %", (0.3, 0.1), graded=0.3),
    Case("a day late, half answer", (0.5, 0.5), delay=A_DAY),
    Case("judge alone, 30 %, no error", (0.0, 0.0), graded=0.3),
    Case("judge of 30 % errs by 10 %", (0.5, 0.5), graded=0.3, errors=0.1),
    Case("all of it, and drift", (0.3, 0.1), graded=0.3, errors=0.1, delay=A_DAY, drifts=True),
)
WORDS = (None, 0.0, 1.0)


def measure(case: Case, deployments: int, advance: Callable[[int], None]) -> dict[str, Any]:
    """Measure a case; ``advance`` is called with the number of deployments just done."""
    inside: dict[Expected, int] = dict.fromkeys(Expected, 0)
    widths: dict[Expected, list[Vector]] = {each: [] for each in Expected}
    errors: dict[Expected, list[Vector]] = {each: [] for each in Expected}
    for seed, first in enumerate(range(0, deployments, AT_ONCE)):
        count = min(AT_ONCE, deployments - first)
        is_inside = {each: np.ones(count, dtype=np.bool_) for each in Expected}
        for requests, labels, truth in _looks(case, count, seed):
            found = {}
            for each, (expected, groups) in labels.items():
                found[each] = bounds(requests, expected, groups, LEVEL)
                is_over = found[each].low <= truth + 1e-12
                is_inside[each] &= is_over & (truth <= found[each].high + 1e-12)
        for each, last in found.items():
            inside[each] += int(is_inside[each].sum())
            widths[each].append(last.high - last.low)
            errors[each].append(np.abs(last.rate - truth))
        advance(count)
    return {
        "case": case.name,
        **{f"covered_{each}": inside[each] / deployments for each in Expected},
        **{
            f"width_{each}": 100.0 * float(np.concatenate(widths[each]).mean()) for each in Expected
        },
        **{
            f"error_{each}": 100.0 * float(np.concatenate(errors[each]).mean()) for each in Expected
        },
        "possible": case.possible,
    }


Labels = dict[Expected, tuple[Vector, list[LabelGroup]]]
"""The sum of what was expected of all requests, and the groups of labelled ones."""


def _looks(case: Case, deployments: int, seed: int) -> Iterator[tuple[Vector, Labels, Vector]]:
    """Yield for every look the number of requests, the labels on them, and the share satisfied.

    If labels are late, the claim covers the requests whose labels are due, as with `--wait`.
    """
    generator = np.random.default_rng([seed, CASES.index(case)])
    groups = {each: Groups(case, deployments) for each in Expected}
    learned = Learned(deployments, case.delay // EVERY)
    satisfied = np.zeros(deployments)
    for look in range((REQUESTS - case.delay) // EVERY):
        numbers = np.arange(look * EVERY, (look + 1) * EVERY, dtype=np.float64)
        kind = generator.integers(len(BETTER), size=(deployments, EVERY))
        truth = generator.random((deployments, EVERY)) < case.rate(numbers) + BETTER[kind]
        word, grade = _draw_labels(case, truth, generator)
        satisfied += truth.sum(axis=1)
        predicted = np.take_along_axis(learned.tenths(), kind, axis=1)
        learned.add(kind, np.where(np.isnan(word), grade, word))
        groups[Expected.PROMISED].add(word, grade, np.full_like(kind, round(10 * ALPHA)))
        groups[Expected.PREDICTED].add(word, grade, predicted)
        groups[Expected.WRONG].add(word, grade, np.rint(10 * (ALPHA - BETTER[kind])).astype(int))
        requests = np.full(deployments, float((look + 1) * EVERY))
        yield requests, {each: groups[each].labels() for each in Expected}, satisfied / requests


class Groups:
    """The requests with the same labels, of which the same was expected; expectations in tenths."""

    def __init__(self, case: Case, deployments: int) -> None:
        kinds = [(word, grade) for word in WORDS for grade in WORDS if case.graded or grade is None]
        self._kinds = [kind for kind in kinds if kind != (None, None)]
        self._drawn = case.drawn
        self._counts = np.zeros((len(self._kinds), 11, deployments))
        self._expected = np.zeros(deployments)

    def add(self, word: Vector, grade: Vector, tenths: Tenths) -> None:
        """Add requests: labels, NaN without one, and expectations, all of the same shape."""
        tenths = tenths.clip(0, 10)
        self._expected += tenths.sum(axis=1) / 10.0
        for place, kind in enumerate(self._kinds):
            is_labelled = _is(word, kind[0]) & _is(grade, kind[1])
            for tenth in np.unique(tenths[is_labelled]):
                self._counts[place, tenth] += (is_labelled & (tenths == tenth)).sum(axis=1)

    def labels(self) -> tuple[Vector, list[LabelGroup]]:
        """Return the sum of the expectations, and the groups that are not empty."""
        groups = [
            LabelGroup(self._counts[place, tenth], *kind, tenth / 10.0, probability=self._drawn)
            for place, kind in enumerate(self._kinds)
            for tenth in range(11)
            if self._counts[place, tenth].any()
        ]
        return self._expected, groups


class Learned:
    """The mean label of each kind of request, which a look learns from looks ``lag`` before it."""

    def __init__(self, deployments: int, lag: int) -> None:
        self._sums = np.zeros((deployments, len(BETTER)))
        self._counts = np.zeros((deployments, len(BETTER)))
        self._lag = lag
        self._coming: list[tuple[Vector, Vector]] = []

    def tenths(self) -> Tenths:
        """Return the predictions, in tenths."""
        mean = (self._sums + WEIGHT * ALPHA) / (self._counts + WEIGHT)
        return np.rint(10.0 * mean).astype(np.int_)

    def add(self, kind: NDArray[np.int_], label: Vector) -> None:
        """Add the labels of a look, NaN without one, and learn those that are due."""
        of_kind = [np.where(kind == number, label, np.nan) for number in range(len(BETTER))]
        self._coming.append(
            (
                np.stack([np.nansum(each, axis=1) for each in of_kind], axis=1),
                np.stack([(~np.isnan(each)).sum(axis=1) for each in of_kind], axis=1),
            )
        )
        if len(self._coming) > self._lag:
            sums, counts = self._coming.pop(0)
            self._sums += sums
            self._counts += counts


def _draw_labels(case: Case, truth: Bits, generator: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw the users' and the judge's labels, NaN if there is none."""
    answers, graded, errs = generator.random((3, *truth.shape))
    has_answered = answers < np.where(truth, case.answers[1], case.answers[0])
    grades = truth ^ (errs < case.errors)
    return (
        np.where(has_answered, truth, np.nan),
        np.where(graded < case.graded, grades, np.nan),
    )


def _is(labels: Vector, value: float | None) -> Bits:
    return np.isnan(labels) if value is None else labels == value


def _shown(found: list[dict[str, Any]], deployments: int) -> Table:
    table = Table(title=f"{deployments:,} deployments, looked at every {EVERY} of {REQUESTS:,}")
    table.add_column("case")
    for title in ("covered", "width, points", "mean error, points"):
        for each in Expected:
            table.add_column(f"{title}: {each}", justify="right")
    table.add_column("possible", justify="right")
    for row in found:
        covered = (f"{row[f'covered_{each}']:.2%}" for each in Expected)
        points = (
            f"{row[f'{name}_{each}']:.2f}" for name in ("width", "error") for each in Expected
        )
        table.add_row(row["case"], *covered, *points, f"{row['possible']:.2f}")
    return table


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deployments", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.deployments < 1:
        parser.error(f"--deployments: given {given.deployments}; allowed: 1 or more")
    found = []
    with Progress(console=Console(stderr=True)) as progress:
        for case in CASES:
            task = progress.add_task(case.name, total=given.deployments)
            advance = lambda done, task=task: progress.advance(task, done)  # noqa: E731
            found.append(measure(case, given.deployments, advance))
    covered = min(row[f"covered_{each}"] for row in found for each in Expected)
    if given.json:
        width = max(row[f"width_{Expected.PREDICTED}"] for row in found)
        summed = {"deployments": given.deployments, "covered": covered, "width_at_10000": width}
        print(json.dumps({**summed, "cases": found}))
    else:
        Console().print(_shown(found, given.deployments))
    return 0 if covered >= LEVEL else 1


if __name__ == "__main__":
    sys.exit(main())
