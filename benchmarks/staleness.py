"""What does it cost to decide from a state that is published now and then?

    python -m benchmarks.staleness FILE [--alpha 0.8] [--feedback 0.1] [--every 1 50 200 1000]
        [--deciders 16] [--requests 6000] [--skip 2000] [--seeds 10] [--json]

A recording is replayed with one learner, which folds every request at once, and many deciders, each
request at one of them by chance. The learner publishes its state before every so many requests of
all deciders; a decider knows in addition its own decisions since, counted once for each decider.
The queue is of the published state too. The recording is repeated, shuffled anew, until there are
enough requests; the figures leave out the first ones, from which the learner learns what there is.

``cost_at_N`` is the cost over the hindsight mix with a state published every N requests,
``satisfaction_at_N`` the share satisfied, and ``shortfall_at_N`` by how much that share was below
alpha at worst, from 500 counted requests on (negative if it never was); all are means over seeds.
``cost_error_at_N`` is the standard error of that mean of costs.

The program ends with status 1 if a state every 200 requests costs more than 1.05 times as much as
one at each request, or misses alpha by more than a point.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Choice, Engine, Labelled
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.core.published import Publication, View, view_of
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Matrix, Recording
from litellm_messplus.replay.run import Run, build_engine, drawn_labels
from litellm_messplus.replay.summary import mix_cost
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import ZooSettings

EVERY = (1, 50, 200, 1000)
MOST, MISSED = 1.05, 0.01
"""The most that a state every 200 requests may cost, as a multiple, and may miss of alpha."""
SETTLED = 500
"""Requests from which on a running share is compared with alpha."""


class Figures(NamedTuple):
    """The figures of one run."""

    cost: float
    satisfaction: float
    shortfall: float


class StaleRun(Run):
    """A run whose deciders decide from what ``engine`` published before every so many requests."""

    def __init__(
        self,
        engine: Engine,
        deciders: Sequence[Engine],
        recording: Recording,
        labels: Matrix,
        every: int,
        seed: int,
    ) -> None:
        super().__init__(engine, recording, labels)
        self._deciders = deciders
        self._every = every
        self._drawn = np.random.default_rng([seed, 3]).integers(len(deciders), size=len(recording))
        self._own: list[list[str]] = [[] for _ in deciders]
        self._publications = 0
        self._seen = [0] * len(deciders)
        self._published = self._publish()

    def _publish(self) -> Publication:
        self._publications += 1
        position, workers = self._publications, len(self._deciders)
        views = {self.engine.zoo.name: View("", *view_of(self.engine.state))}
        return Publication.unpack(Publication(position, 1, workers, {}, views).pack())

    def _decide(
        self, request: int, level: ServiceLevel, labelled: Labelled | None = None
    ) -> Choice:
        if request % self._every == 0:
            self._published = self._publish()
        place = int(self._drawn[request])
        learner, self.engine = self.engine, self._up_to_date(place)
        self._own[place].append(str(request))
        try:
            return super()._decide(request, level, labelled)
        finally:
            self.engine = learner

    def _up_to_date(self, place: int) -> Engine:
        """Return a decider that has seen what is published."""
        decider, published = self._deciders[place], self._published
        if self._seen[place] != published.position:
            decider.see(published.views[decider.zoo.name], published.workers)
            self._seen[place] = published.position
            for request_id in self._own[place]:  # all decided before are in it
                decider.forget(request_id)
            self._own[place].clear()
        return decider


def session(
    recording: Recording, requests: int, feedback: float, seed: int
) -> tuple[Recording, Matrix]:
    """Draw so many requests, and the labels that their calls get."""
    generator = np.random.default_rng(seed)
    passes = -(-requests // len(recording))
    order = np.concatenate([generator.permutation(len(recording)) for _ in range(passes)])
    taken = recording.take(order[:requests])
    return taken, drawn_labels(taken.satisfied, feedback, generator)


def figures(
    recording: Recording, encoder: Encoder, given: argparse.Namespace, every: int, seed: int
) -> Figures:
    """Replay one seed with a state published every so many requests."""
    taken, labels = session(recording, given.requests, given.feedback, seed)
    settings = ZooSettings(alpha=given.alpha)
    engine, *deciders = (
        build_engine(recording, settings, encoder, seed) for _ in range(1 + given.deciders)
    )
    outcome = StaleRun(engine, deciders, taken, labels, every, seed).go()
    counted = slice(given.skip, None)
    satisfied, cost = outcome.satisfied[counted], outcome.cost[counted]
    running = satisfied.cumsum() / np.arange(1, len(satisfied) + 1)
    return Figures(
        float(cost.sum()) / mix_cost(taken.satisfied[counted], taken.cost[counted], given.alpha),
        float(satisfied.mean()),
        float((given.alpha - running[SETTLED:]).max()),
    )


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure all of it."""
    encoder, console = HashedNgrams(), Console(stderr=True)
    recording = read_file(Path(given.file), encoder)
    found: dict[str, Any] = {
        "file": Path(given.file).name,
        "alpha": given.alpha,
        "feedback": given.feedback,
        "deciders": given.deciders,
        "requests": given.requests,
        "skipped": given.skip,
        "seeds": list(range(given.seeds)),
    }
    for every in given.every:
        runs = [
            figures(recording, encoder, given, every, seed)
            for seed in track(range(given.seeds), f"every {every}", console=console)
        ]
        for name, values in zip(Figures._fields, zip(*runs, strict=True), strict=True):
            found[f"{name}_at_{every}"] = fmean(values)
        error = stdev(run.cost for run in runs) / math.sqrt(given.seeds)
        found[f"cost_error_at_{every}"] = error
    return found


def is_held(found: dict[str, Any]) -> bool:
    """Tell whether a state every 200 requests costs and satisfies as one at each request."""
    return bool(
        found["cost_at_200"] <= MOST * found["cost_at_1"]
        and found["satisfaction_at_200"] >= found["alpha"] - MISSED
    )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a recording, as for `messplus replay`")
    parser.add_argument("--alpha", type=float, default=0.8)
    parser.add_argument("--feedback", type=float, default=0.1)
    parser.add_argument("--every", type=int, nargs="+", default=list(EVERY))
    parser.add_argument("--deciders", type=int, default=16)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--skip", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not {1, 200} <= set(given.every) or min(given.every) < 1:
        parser.error("--every: 1, 200 and others")
    if given.seeds < 2 or given.deciders < 1 or given.requests - given.skip <= SETTLED:
        parser.error(
            f"--seeds: 2 or more; --deciders: 1 or more; more than {SETTLED} requests to count"
        )
    threadpool_limits(limits=1, user_api="blas")
    found = measure(given)
    if given.json:
        print(json.dumps(found))
    else:
        for every in given.every:
            row = [f"{name} {found[f'{name}_at_{every}']:.3f}" for name in Figures._fields]
            print(f"every {every}: {', '.join(row)}")
    return 0 if is_held(found) else 1


if __name__ == "__main__":
    sys.exit(main())
