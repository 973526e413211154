"""Do honest keys' labels count, and how far does a hostile key move what the others get and pay?

    python -m benchmarks.keys [--seeds 6] [--requests 5000] [--json]

Simulated keys share one service level of a zoo of three models, through the real engine in a closed
loop: every label that `labels/key_pull.py` counts moves the queue and teaches the predictor.
``honest_counted_least`` is the share of the labels of honest keys that count, in the worst of the
honest cases. In the hostile cases one of ten keys with equal traffic labels every one of its
requests falsely from the first request on; ``hostile_moved_points_most`` is the difference in
points between the others' satisfaction and that with all ten honest, and ``hostile_cost_most`` the
factor on the cost of their requests, in the worst case. Two hostile keys that do the same together
may move twice as much: both figures use half of their effect.

In these cases the others label all of their requests. If they label a tenth (``few_labels``),
the first false labels weigh more, and costs vary so much from seed to seed that they are reported
with their standard errors, without a bound.

The program ends with status 1 if fewer than 90 % of an honest case's labels count, or if a hostile
key moves more than 2 points or 10 % of the cost. All cases are means over the seeds. A hostile case
is compared with the honest one of the same seeds: the same keys send the same requests, and each
model would give the same answers. Standard errors are those of that comparison.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from random import Random
from statistics import mean, stdev
from typing import Any

from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.entries import Example
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.costs.price import Price
from litellm_messplus.labels.key_pull import LabelContent, LevelActivity, may_count
from litellm_messplus.settings.labels import LabelsSettings
from tests.support.builders import (
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    settled,
)
from tests.support.closed_loop import TOKENS, Model

ZOO = (Model("small", 0.6, 1.0), Model("medium", 0.75, 4.0), Model("large", 0.9, 12.0))
ALPHA = 0.7
WARM_UP = 500
"""Requests before costs and satisfaction are measured."""
KEYS = 10
"""Number of keys in the hostile cases, all with the same traffic."""
PULL = LabelsSettings().key_pull
COUNTED, MOVED, COST = 0.9, 2.0, 1.1


class Attack(Enum):
    """The ways in which a hostile key labels all of its requests."""

    OPPOSITE = "says the opposite"
    UNSATISFIED = "is never satisfied"
    SATISFIED = "is always satisfied"
    FAULTS = "sets impossible checks"

    def said(self, value: float) -> LabelContent:
        """Label a request whose true satisfaction is ``value``."""
        if self is Attack.OPPOSITE:
            return LabelContent(1.0 - value, 1.0)
        if self is Attack.FAULTS:
            return LabelContent(0.0, 1.0, is_fault=True)
        return LabelContent(float(self is Attack.SATISFIED), 1.0)


@dataclass(frozen=True)
class Case:
    """Keys by their share of the requests, and the share of them that each labels. By ``shifts``
    the models satisfy a key's requests more or less often; the last keys are ``hostile``."""

    name: str
    shares: tuple[float, ...]
    judged: tuple[float, ...]
    shifts: tuple[float, ...] = ()
    hostile: int = 0
    attack: Attack | None = None

    @property
    def honest(self) -> range:
        return range(len(self.shares) - self.hostile)

    def shift(self, key: int) -> float:
        return self.shifts[key] if self.shifts else 0.0


def equal(keys: int, judged: float, name: str = "") -> Case:
    """Return honest keys with equal numbers of requests."""
    share = "all" if judged == 1.0 else f"{100.0 * judged:.0f} %"
    named = f"{keys} {'keys' if keys > 1 else 'key'}, {share} labelled"
    return Case(name or named, (1.0,) * keys, (judged,) * keys)


UNEQUAL = tuple(1.0 / place for place in range(1, KEYS + 1))
HONEST = (
    *(equal(keys, 1.0) for keys in (1, 2, 3, 5, 10, 20)),
    *(equal(keys, 0.1) for keys in (3, 10, 20)),
    Case("10 keys, the first ten times as busy as the last", UNEQUAL, (1.0,) * KEYS),
    Case("5 keys, the busiest silent", (6.0, 1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0, 1.0)),
    Case("10 keys, half of them silent", (1.0,) * KEYS, (0.0, 1.0) * 5),
    Case("10 keys, one labels all, nine 10 %", (1.0,) * KEYS, (1.0, *(0.1,) * 9)),
    Case("2 keys, 15 points apart", (1.0, 1.0), (1.0, 1.0), (-0.05, 0.1)),
    Case("5 keys, up to 15 points apart", (1.0,) * 5, (1.0,) * 5, (-0.05, -0.05, 0.0, 0.05, 0.1)),
)


def hostile(attack: Attack, judged: float, keys: int = 1) -> Case:
    """Return ten keys, the last of which are hostile."""
    share = "all" if judged == 1.0 else f"{100.0 * judged:.0f} %"
    who = "one" if keys == 1 else "two, each"
    case = equal(KEYS, judged, f"{who} {attack.value}, others label {share}")
    return replace(case, hostile=keys, attack=attack)


ALONE = tuple(hostile(attack, 1.0) for attack in Attack)
TOGETHER = (hostile(Attack.OPPOSITE, 1.0, 2),)
FEW = (
    *(hostile(attack, 0.1) for attack in (Attack.OPPOSITE, Attack.UNSATISFIED)),
    hostile(Attack.OPPOSITE, 0.1, 2),
)
"""Cases in which the others label a tenth. There the cost with honest keys alone varies by a fifth
from seed to seed, so a few seeds say little about it."""


MODELS: Mapping[str, Model] = {model.name: model for model in ZOO}


@dataclass
class Town:
    """The keys of a case, and the outcome of the honest ones' requests."""

    case: Case
    engine: Engine
    random: Random
    level: LevelActivity = field(default_factory=LevelActivity)
    labelled: int = 0
    counted: int = 0
    costs: list[float] = field(default_factory=list)
    satisfied: list[float] = field(default_factory=list)

    def ask(self, number: int) -> None:
        """Serve one request of a random key. Each model's answer to it does not depend on which
        model is called, nor on the keys' labels."""
        case, random = self.case, self.random
        place = random.choices(range(len(case.shares)), case.shares)[0]
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        drawn = {model.name: random.random() - case.shift(place) for model in ZOO}
        is_labelled = random.random() < case.judged[place]
        served, cost = self._serve(f"r{number}", features)
        activity = self.level.of(_key(place))
        self.level.requests += 1
        self.level.keys[_key(place)] = replace(activity, requests=activity.requests + 1)
        value = MODELS[served].satisfies(drawn[served], False)
        taught = example(served, request_id=f"r{number}", features=features)
        if place not in case.honest:
            if case.attack is not None:
                self._label(place, case.attack.said(value), taught)
            elif is_labelled:
                self._label(place, LabelContent(value, 1.0), taught)
            return
        if number >= WARM_UP:
            self.costs.append(cost)
            self.satisfied.append(value)
        if is_labelled:
            self.labelled += 1
            self.counted += self._label(place, LabelContent(value, 1.0), taught)

    def _serve(self, request_id: str, features: Features) -> tuple[str, float]:
        """Decide and call; returns the chosen model, and the cost of all calls."""
        promise = self.engine.zoo.levels["default"]
        question = Question(request_id, promise, Prompt(features), 40, self.engine.zoo.candidates)
        decision = self.engine.decide(question).decision
        shortfall = promise.alpha - decision.expected_satisfaction
        self.engine.apply(decided(request_id=request_id, expected_shortfall=shortfall))
        called = (decision.chosen, *decision.explored)
        for name in called:
            self.engine.apply(settled(name, completion_tokens=TOKENS))
        return decision.chosen, sum(MODELS[name].cost for name in called)

    def _label(self, place: int, said: LabelContent, taught: Example) -> bool:
        """Write a label if it counts; tell whether it does."""
        if not may_count(self.level, _key(place), said, least=PULL):
            return False
        self.level.keys[_key(place)] = self.level.of(_key(place)).after(said)
        request_id, call_id = taught.request_id, f"{taught.request_id}.0"
        self.engine.apply(
            labelled(
                said.value,
                request_id=request_id,
                call_id=call_id,
                alpha=ALPHA,
                example=taught,
            )
        )
        return True


def _key(place: int) -> str:
    return f"key-{place}"


@dataclass(frozen=True)
class Outcome:
    """The honest keys of a case: the share of their labels that count, the share of their requests
    that satisfies, and the mean cost of one."""

    counted: float
    satisfied: float
    cost: float

    @classmethod
    def mean(cls, outcomes: Sequence["Outcome"]) -> "Outcome":
        return cls(
            mean(each.counted for each in outcomes),
            mean(each.satisfied for each in outcomes),
            mean(each.cost for each in outcomes),
        )


def serve(case: Case, seed: int, requests: int) -> Outcome:
    """Serve ``requests`` requests of a case."""
    prices = {model.name: Price(0.0, model.cost / TOKENS) for model in ZOO}
    town = Town(case, build_engine(build_zoo(prices, alpha=ALPHA), seed), Random(f"keys {seed}"))
    for number in range(requests):
        town.ask(number)
    return Outcome(town.counted / max(town.labelled, 1), mean(town.satisfied), mean(town.costs))


def compared(cases: Sequence[Case], seeds: int, requests: int) -> list[dict[str, Any]]:
    """Serve every case with each seed, and compare hostile ones with ten honest keys."""
    bases = [equal(KEYS, max(case.judged)) for case in cases]
    todo = [(case, seed) for case in dict.fromkeys((*cases, *bases)) for seed in range(seeds)]
    with ProcessPoolExecutor(initializer=threadpool_limits, initargs=(1, "blas")) as pool:
        served = pool.map(_serve, [(*run, requests) for run in todo])
        shown = track(served, "keys", len(todo), console=Console(stderr=True))
        outcomes = dict(zip(todo, shown, strict=True))

    def of(case: Case) -> list[Outcome]:
        return [outcomes[case, seed] for seed in range(seeds)]

    return [compare(case, of(case), of(base)) for case, base in zip(cases, bases, strict=True)]


def measure(seeds: int, requests: int) -> dict[str, Any]:
    """Serve every case with each seed, and return the worst of each kind."""
    kinds = (HONEST, (*ALONE, *TOGETHER), FEW)
    rows = iter(compared([case for kind in kinds for case in kind], seeds, requests))
    honest, labelled_all, few = (list(islice(rows, len(kind))) for kind in kinds)
    moved = max(few, key=lambda row: abs(float(row["moved_points"])))
    dearest = max(few, key=lambda row: float(row["cost"]))
    return {
        "seeds": seeds,
        "requests": requests,
        "honest_counted_least": min(row["honest_counted"] for row in honest),
        "hostile_moved_points_most": max(
            abs(row["moved_points"]) / row["hostile"] for row in labelled_all
        ),
        "hostile_cost_most": max(
            1.0 + (row["cost"] - 1.0) / row["hostile"] for row in labelled_all
        ),
        "few_labels_moved_points_most": abs(moved["moved_points"]),
        "few_labels_moved_points_error": moved["moved_points_error"],
        "few_labels_cost_most": dearest["cost"],
        "few_labels_cost_error": dearest["cost_error"],
        "cases": [*honest, *labelled_all, *few],
    }


def _serve(run: tuple[Case, int, int]) -> Outcome:
    return serve(*run)


def compare(case: Case, found: Sequence[Outcome], base: Sequence[Outcome]) -> dict[str, Any]:
    """Compare a hostile case with honest keys by seed; of an honest one, give the counted share."""
    mean_found, mean_base = Outcome.mean(found), Outcome.mean(base)
    figures = {"case": case.name, "hostile": case.hostile, "honest_counted": mean_found.counted}
    if not case.hostile:
        return figures
    cost = mean_found.cost / mean_base.cost
    pairs = list(zip(found, base, strict=True))
    return {
        **figures,
        "moved_points": 100.0 * (mean_found.satisfied - mean_base.satisfied),
        "moved_points_error": _error([100.0 * (a.satisfied - b.satisfied) for a, b in pairs]),
        "cost": cost,
        "cost_error": _error([(a.cost - cost * b.cost) / mean_base.cost for a, b in pairs]),
    }


def _error(differences: Sequence[float]) -> float:
    """Compute the standard error of a mean over the seeds."""
    return stdev(differences) / math.sqrt(len(differences))


def is_good(found: Mapping[str, Any]) -> bool:
    """Tell whether all bounds hold."""
    return bool(
        found["honest_counted_least"] >= COUNTED
        and found["hostile_moved_points_most"] <= MOVED
        and found["hostile_cost_most"] <= COST
    )


def markdown(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table in `docs/labels.md`."""
    yield "| Keys | Honest labels that count | The others' satisfaction | Their cost |"
    yield "| --- | --- | --- | --- |"
    for row in found["cases"]:
        moved, cost = "", ""
        if row["hostile"]:
            moved = f"{row['moved_points']:+.1f} ± {row['moved_points_error']:.1f} points"
            cost = f"{100.0 * (row['cost'] - 1.0):+.0f} ± {100.0 * row['cost_error']:.0f} %"
        yield f"| {row['case']} | {100.0 * row['honest_counted']:.0f} % | {moved} | {cost} |"


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 2 or given.requests <= WARM_UP:
        parser.error(f"--seeds: 2 or more; --requests: more than {WARM_UP}")
    found = measure(given.seeds, given.requests)
    if given.json:
        print(json.dumps(found))
    else:
        print("\n".join(markdown(found)))
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
