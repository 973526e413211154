"""A model silently changes: how much is lost, how soon it is found out, and how often wrongly?

    python -m benchmarks.drift [--recordings ../shared/recorded] [--seeds 12] [--json]

LLMDrift's change: gpt-4 and gpt-3.5 answer as in March, then as in June, under the same names; a
third model satisfies .90 at twice the price of gpt-4, and alpha is .85. ``first_hundred`` is what
the first hundred requests after the change are above alpha, in points, and ``recovery_median`` how
many requests it takes until the last hundred, all served after it, are back within two points.

``alarm_labels`` is the number of labels of a model after which half of the drops by ten points are
found out: models of the recordings that satisfy more than .60, each judged on all its prompts,
whose satisfied answers are spoilt at random from label 600 on. ``false_alarms_per_5000`` are the
changes found while nothing changes, in 5,000 labels, by recording, each played for 20,000 requests
drawn with replacement.

The program ends with status 1 if a recovery takes more than 130 requests, the first hundred are
more than 8 points short, half of the alarms take more than 150 labels, or a recording has more than
one false alarm.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Recording, concatenate
from litellm_messplus.replay.run import Run, Verdict, build_engine
from litellm_messplus.settings.schema import ZooSettings

MIXED = {
    "tiny": 0.80,
    "ulab": 0.59,
    "zeroeval_mix": 0.80,
    "llmdrift": 0.85,
    "mmlu_pro_open": 0.55,
    "alpaca": 0.87,
}
"""The recordings of mixed difficulty, and the share that each is to hold."""
ALPHAS = {
    **MIXED,
    "arc_challenge": 0.50,
    "arc_easy": 0.75,
    "piqa": 0.78,
    "sciq": 0.96,
    "winogrande": 0.70,
    "routerbench_winogrande": 0.70,
}
CHANGED = "llmdrift"
MARCH, JUNE = ("gpt-3.5-turbo-0301", "gpt-4-0314"), ("gpt-3.5-turbo-0613", "gpt-4-0613")
WINDOW, WITHIN = 100, 0.02
THIRD, TWICE = 0.90, 2.0
"""What the third model satisfies, and its price as a multiple of gpt-4's."""
DROP, BEFORE, AFTER, LEAST_RATE = 0.10, 600, 600, 0.60
REQUESTS, LABELS = 20_000, 5_000
RECOVERY, SHORT, FOUND, FALSE = 130.0, -8.0, 150.0, 1.0

ENCODER = HashedNgrams()


class Watched(Run):
    """A run in which every label comes at once; it counts them, and the changes found."""

    def __init__(self, recording: Recording, alpha: float, seed: int) -> None:
        engine = build_engine(recording, ZooSettings(alpha=alpha), ENCODER, seed)
        super().__init__(engine, recording, recording.satisfied)
        self.labels = self.alarms = 0

    def _judge(self, label: Verdict) -> None:
        before = self._changes()
        super()._judge(label)
        self.labels += 1
        found = zip(before, self._changes(), strict=True)
        self.alarms += any(now not in (None, was) for was, now in found)

    def _changes(self) -> list[float | None]:
        policy = self.engine.state.policy
        assert isinstance(policy, AdaptivePolicy)
        changes = [test.change for test in policy.predictor.changes]
        return [None if each is None else each.found for each in changes]


# LLMDrift's change.


def dated(recording: Recording, models: Sequence[str], seed: int) -> Recording:
    """Take two models' answers, in an order of the seed's, next to those of the third model."""
    random = np.random.default_rng([seed, *map(ord, models[0][-4:])])
    places = [recording.models.index(name) for name in models]
    third = (random.random(len(recording)) < THIRD).astype(np.float64)
    return replace(
        recording,
        models=("gpt-3.5", "gpt-4", "third"),
        satisfied=np.column_stack([recording.satisfied[:, places], third]),
        cost=np.column_stack([recording.cost[:, places], TWICE * recording.cost[:, places[1]]]),
    ).take(random.permutation(len(recording)))


def change(recording: Recording, seed: int) -> tuple[float, float]:
    """Serve the change; return the points above alpha in the first hundred requests after it, and
    the requests until the last hundred are back."""
    march, june = dated(recording, MARCH, seed), dated(recording, JUNE, seed)
    alpha = ALPHAS[CHANGED]
    after = Watched(concatenate([march, june]), alpha, seed).go().satisfied[len(march) :]
    rolling = sliding_window_view(after, WINDOW).mean(axis=1)
    back = np.flatnonzero(rolling >= alpha - WITHIN)
    recovery = WINDOW + int(back[0]) if len(back) else len(after)
    return 100.0 * float(rolling[0] - alpha), float(recovery)


# A drop by ten points, and no change at all.


def labels_to_alarm(recording: Recording, model: int, seed: int) -> float:
    """Count the labels until a drop of one model is found out; infinite if it is not."""
    random, predictor = np.random.default_rng(seed), Predictor(("model",), ENCODER.dimension)
    satisfied, prompts = recording.satisfied[:, model], recording.prompts
    spoilt = DROP / satisfied.mean()
    for number, row in enumerate(random.integers(len(recording), size=BEFORE + AFTER).tolist()):
        read, label = int(recording.prompt[row]), float(satisfied[row])
        if number >= BEFORE and random.random() < spoilt:
            label = 0.0
        prompt = Prompt(prompts.features[read], prompts.surfaces[read])
        predictor.decided(float(number), False)
        predictor.learn("model", str(number), str(number), prompt, Label(label))
        found = predictor.changes[0].change
        if found is not None and found.found >= BEFORE:
            return number + 1.0 - BEFORE
    return float("inf")


def false_alarms(recording: Recording, alpha: float) -> float:
    """Count the changes found in ``LABELS`` labels while nothing changes."""
    rows = np.random.default_rng(len(recording)).integers(len(recording), size=REQUESTS)
    run = Watched(recording.take(rows), alpha, 0)
    run.go()
    return LABELS * run.alarms / run.labels


def measure(folder: Path, seeds: int, progress: Progress) -> dict[str, Any]:
    """Measure everything."""
    recordings = {name: read_file(folder / f"{name}.csv.gz", ENCODER) for name in ALPHAS}
    task = progress.add_task("a change", total=seeds + 2 * len(recordings))
    found = []
    for seed in range(seeds):
        found.append(change(recordings[CHANGED], seed))
        progress.advance(task)
    first, recovery = np.array(found).T
    labels, wrong = [], {}
    for name, recording in recordings.items():
        rates = recording.satisfied.mean(axis=0).tolist()
        models = [place for place, rate in enumerate(rates) if rate > LEAST_RATE]
        labels += [labels_to_alarm(recording, model, seed) for model in models for seed in range(2)]
        progress.advance(task)
        wrong[name] = false_alarms(recording, ALPHAS[name])
        progress.advance(task)
    return {
        "seeds": seeds,
        "recovery_median": float(np.median(recovery)),
        "recovery": recovery.tolist(),
        "first_hundred": float(first.mean()),
        "alarm_labels": float(np.median(labels)),
        "false_alarms_per_5000": wrong,
    }


def is_held(found: dict[str, Any]) -> bool:
    """Tell whether all bars are held."""
    return bool(
        found["recovery_median"] <= RECOVERY
        and found["first_hundred"] >= SHORT
        and found["alarm_labels"] <= FOUND
        and max(found["false_alarms_per_5000"].values()) <= FALSE
    )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=Path, default=Path("../shared/recorded"))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error("--seeds: 1 or more")
    if not given.recordings.is_dir():
        parser.error(f"--recordings: no folder {given.recordings}")
    with threadpool_limits(1), Progress(console=Console(stderr=True)) as progress:
        found = measure(given.recordings, given.seeds, progress)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")
    return 0 if is_held(found) else 1


if __name__ == "__main__":
    sys.exit(main())
