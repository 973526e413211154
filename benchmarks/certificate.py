"""Does the certificate hold at every look, and how wide is it?

    python -m benchmarks.certificate [--deployments 10000] [--json]

Simulated deployments with a known truth are certified after every 100 of 10,000 requests, a
thousand a day, at 95 %. ``covered`` is the share of deployments whose truth was inside at every
look; ``width_at_10000`` is the width of the interval at the last look, in points, and ``possible``
the width of one for a single look that knows the judge's errors. The program ends with status 1 if
a case covers less than 95 %. Its figures for all cases together are those of
the worst.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from litellm_messplus.certificate.evidence import Heard, bounds
from litellm_messplus.certificate.sequence import Vector

LEVEL = 0.95
REQUESTS = 10_000
EVERY = 100
A_DAY = 1_000
ALPHA = 0.8
AT_ONCE = 500
"""Deployments simulated in parallel."""

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """A kind of deployment. ``answers`` are the probabilities that an unsatisfied and a satisfied
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
    covered, widths, errors = 0, [], []
    for seed, first in enumerate(range(0, deployments, AT_ONCE)):
        count = min(AT_ONCE, deployments - first)
        is_inside = np.ones(count, dtype=np.bool_)
        for requests, heard, truth in _looks(case, count, seed):
            found = bounds(requests, heard, ALPHA, LEVEL)
            is_inside &= (found.low <= truth + 1e-12) & (truth <= found.high + 1e-12)
        covered += int(is_inside.sum())
        widths.append(found.high - found.low)
        errors.append(found.rate - truth)
        advance(count)
    return {
        "case": case.name,
        "covered": covered / deployments,
        "width_at_10000": 100.0 * float(np.concatenate(widths).mean()),
        "error_at_10000": 100.0 * float(np.abs(np.concatenate(errors)).mean()),
        "possible": case.possible,
    }


def _looks(case: Case, deployments: int, seed: int) -> Iterator[tuple[Vector, list[Heard], Vector]]:
    """Yield for every look the number of requests, the labels on them, and the share satisfied.

    If labels are late, the claim covers the requests whose labels are due, as with `--wait`.
    """
    generator = np.random.default_rng([seed, CASES.index(case)])
    kinds = [(word, grade) for word in WORDS for grade in WORDS if (word, grade) != (None, None)]
    counts = {kind: np.zeros(deployments) for kind in kinds}
    satisfied = np.zeros(deployments)
    for look in range((REQUESTS - case.delay) // EVERY):
        numbers = np.arange(look * EVERY, (look + 1) * EVERY, dtype=np.float64)
        truth = generator.random((deployments, EVERY)) < case.rate(numbers)
        word, grade = _said(case, truth, generator)
        satisfied += truth.sum(axis=1)
        for said in kinds:
            counts[said] += (_is(word, said[0]) & _is(grade, said[1])).sum(axis=1)
        requests = np.full(deployments, float((look + 1) * EVERY))
        heard = [
            Heard(counts[said], said[0], said[1], probability=case.drawn)
            for said in kinds
            if case.graded > 0.0 or said[1] is None
        ]
        yield requests, heard, satisfied / requests


def _said(case: Case, truth: Bits, generator: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw the users' and the judge's labels, NaN if there is none."""
    answers, graded, errs = generator.random((3, *truth.shape))
    has_answered = answers < np.where(truth, case.answers[1], case.answers[0])
    says = truth ^ (errs < case.errors)
    return (
        np.where(has_answered, truth, np.nan),
        np.where(graded < case.graded, says, np.nan),
    )


def _is(said: Vector, value: float | None) -> Bits:
    return np.isnan(said) if value is None else said == value


def _shown(found: list[dict[str, Any]], deployments: int) -> Table:
    table = Table(title=f"{deployments:,} deployments, looked at every {EVERY} of {REQUESTS:,}")
    table.add_column("case")
    for title in ("covered at every look", "width, points", "mean error, points", "possible"):
        table.add_column(title, justify="right")
    for each in found:
        figures = (each["width_at_10000"], each["error_at_10000"], each["possible"])
        table.add_row(
            each["case"], f"{each['covered']:.2%}", *(f"{value:.2f}" for value in figures)
        )
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
    covered = min(each["covered"] for each in found)
    if given.json:
        width = max(each["width_at_10000"] for each in found)
        summed = {"deployments": given.deployments, "covered": covered, "width_at_10000": width}
        print(json.dumps({**summed, "cases": found}))
    else:
        Console().print(_shown(found, given.deployments))
    return 0 if covered >= LEVEL else 1


if __name__ == "__main__":
    sys.exit(main())
