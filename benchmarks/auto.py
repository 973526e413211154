"""What `labels: auto` ends at, and when its labels have paid for themselves.

    python -m benchmarks.auto FILE [--alpha 0.8] [--requests 2000] [--seeds 3] [--judge 0.0]
        [--by compare grade truth all] [--json]

A recording is replayed with labels that are bought as `labels: auto` buys them, within its budget.
With ``--by compare`` an answer satisfies if it is the same as the largest model's to the same
request, which satisfies always: two right answers are the same, two wrong ones with probability
``SAME``, and a judge prefers the largest's else. With ``--by grade`` a judge is wrong as that of
the tiny zoo is: it calls ``FALSE_SATISFIED`` of the wrong answers right and ``FALSE_UNSATISFIED``
of the right ones wrong. With ``--by truth`` the same requests get their recorded labels, with
``--by all`` all requests do, free. A question to a judge costs ``--judge`` times the largest's
call.

``over`` is the satisfaction by the recorded labels, minus alpha, in points, ``spread`` its standard
deviation over seeds, ``by_labels`` the same by the labels that the judge would give; ``labelled``
is the share of requests with labels; ``cost`` is over the hindsight mix, that of labels included,
and ``label_cost`` that of labels alone; all means over seeds.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from examples.tiny_zoo.judges import FALSE_SATISFIED, FALSE_UNSATISFIED
from litellm_messplus.brain.buying import ORDERS, LabelPurse, compared_too, unseen_costs
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.decision import Situation
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.labels.buying import HOURS, is_drawn, need, rate
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Matrix, Recording
from litellm_messplus.replay.run import Run, build_engine
from litellm_messplus.replay.summary import mix_cost
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store.judging import LabelCosts

SHARE_OF_SAVED = 0.1
SAME = 0.2
"""The probability that two unsatisfactory answers are the same."""
BY = ("compare", "grade", "truth", "all")


class BoughtRun(Run):
    """A run whose labels are bought for the requests that need them."""

    def __init__(
        self,
        engine: Engine,
        recording: Recording,
        labels: Matrix,
        by: str,
        judge: float,
        seed: int,
    ) -> None:
        super().__init__(engine, recording, labels)
        self._by = by
        self._seed = seed
        self._judge_share = judge
        self._largest = self.place[engine.zoo.largest]
        requests = len(recording)
        self.label_cost = np.zeros(requests)
        self.labelled = 0
        self._probability: list[float | None] = [None] * requests
        zoo = ZooSettings(alpha=self.level.alpha)
        self._purse = LabelPurse(zoo, BuyingSettings(share_of_saved=SHARE_OF_SAVED))
        self._day = float(recording.cost[:, self._largest].sum())
        self._spent = self._served_cost = self._largest_cost = 0.0

    def _wanted(self, prompt: int) -> float:
        policy = self.engine.state.policy
        assert isinstance(policy, AdaptivePolicy)
        surface = self._read[prompt].surface
        return rate(need(policy.predictor, self.engine.zoo.largest, self.level.alpha, surface))

    def _draw(self, request: int, situation: Situation) -> bool:
        """Draw whether labels of the request's answers are bought."""
        if self._by == "all":
            return True
        largest, others = unseen_costs(situation)
        saved = self._largest_cost - self._served_cost - self._spent
        known = LabelCosts(
            saved=saved, unseen=self._spent, unseen_today=self._spent, largest_before=self._day
        )
        self._purse.learn(known, HOURS, 0.0)
        wanted = self._wanted(self._prompt[request])
        judging = QUESTIONS[self._by] / ORDERS * self._judge_share * largest
        probability, _ = self._purse.probability(wanted, largest, others, judging)
        if not is_drawn(self._seed, str(request), probability):
            return False
        self._probability[request] = probability
        return True

    def _serve(self, request: int) -> bool:
        self._fold_in(request)
        drawn = [False]

        def labelled(situation: Situation) -> bool:
            drawn[0] = self._draw(request, situation)
            return drawn[0]

        choice = self._decide(request, self.level, labelled)
        decision = choice.decision
        if drawn[0] and self._by != "all":
            extra = compared_too({decision.chosen, *decision.explored}, choice.situation)
            if extra is not None:
                explored = (*decision.explored, extra)
                decision = replace(decision, explored=explored, is_exploration=True)
        choice = replace(choice, decision=decision)
        self._note_decided(request, self.level.name, choice, 1 + len(decision.explored))
        called = [self.place[name] for name in (decision.chosen, *decision.explored)]
        verdicts = list(self._settle(request, called, is_exploration=decision.is_exploration))
        self._pay(request, called)
        if drawn[0]:
            self.labelled += 1
            for verdict in verdicts:
                self._late.add(request, replace(verdict, probability=self._probability[request]))
        return decision.is_exploration

    def _pay(self, request: int, called: Sequence[int]) -> None:
        """Count what labels cost: unseen calls, and the judge's questions."""
        cost = self._cost[request]
        paid = sum(cost[model] for model in called[1:])
        if self._probability[request] is not None:
            paid += QUESTIONS[self._by] * self._judge_share * cost[self._largest]
        self.label_cost[request] = paid
        self._spent += paid
        self._served_cost += cost[called[0]]
        self._largest_cost += cost[self._largest]


QUESTIONS = {"compare": 2.0, "grade": 1.0, "truth": 0.0}
"""The questions to a judge, by whose word a request is labelled."""


def compared(truth: Matrix, largest: int) -> Matrix:
    """Return the labels of a comparison with the largest's answers, of the shape of ``truth``."""
    labels = np.ones_like(truth)
    for request, row in enumerate(truth):
        wrong_alike = uniform(0, "same", str(request)) < SAME
        for model, own in enumerate(row):
            is_same = own == row[largest] and (own > 0.5 or wrong_alike)
            labels[request, model] = float(model == largest or is_same)
    return labels


def graded(truth: Matrix, seed: int) -> Matrix:
    """Return the labels of a judge that errs."""
    draws = np.random.default_rng([seed, 5]).random(truth.shape)
    return np.where(truth > 0.5, draws >= FALSE_UNSATISFIED, draws < FALSE_SATISFIED).astype(float)


def figures(
    recording: Recording, given: argparse.Namespace, by: str, seed: int
) -> dict[str, float]:
    """Replay one seed."""
    generator = np.random.default_rng(seed)
    taken = recording.take(generator.permutation(len(recording))[: given.requests])
    engine = build_engine(recording, ZooSettings(alpha=given.alpha), HashedNgrams(), seed)
    largest = recording.models.index(engine.zoo.largest)
    truth = labels = taken.satisfied
    if by in ("compare", "grade"):
        labels = compared(truth, largest) if by == "compare" else graded(truth, seed)
    run = BoughtRun(engine, taken, labels, by, given.judge, seed)
    outcome = run.go()
    requests = np.arange(len(taken))
    served = float(taken.cost[requests, outcome.served].sum())
    mix = mix_cost(truth, taken.cost, given.alpha)
    by_labels = float(labels[requests, outcome.served].mean())
    return {
        "over": 100.0 * (float(outcome.satisfied.mean()) - given.alpha),
        "by_labels": 100.0 * (by_labels - given.alpha),
        "labelled": run.labelled / len(taken),
        "cost": (served + float(run.label_cost.sum())) / mix,
        "label_cost": float(run.label_cost.sum()) / mix,
    }


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure each way of labelling."""
    recording = read_file(Path(given.file), HashedNgrams())
    found: dict[str, Any] = {"file": Path(given.file).name, "alpha": given.alpha}
    for by in given.by:
        seeds = track(range(given.seeds), by, console=Console(stderr=True))
        runs = [figures(recording, given, by, seed) for seed in seeds]
        means = {name: fmean(run[name] for run in runs) for name in runs[0]}
        found[by] = means | {"spread": stdev(run["over"] for run in runs)}
    return found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a recording, as for `messplus replay`")
    parser.add_argument("--alpha", type=float, default=0.8)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--judge", type=float, default=0.0)
    parser.add_argument("--by", nargs="+", default=list(BY), choices=BY)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("--seeds: 2 or more")
    threadpool_limits(limits=1, user_api="blas")
    found = measure(given)
    if given.json:
        print(json.dumps(found))
        return
    for by in given.by:
        print(by, ", ".join(f"{name} {value:.2f}" for name, value in found[by].items()))


if __name__ == "__main__":
    main()
