"""One model at three efforts, a simulation: what does routing between its arms save?

    python -m benchmarks.arms [--alpha 0.9] [--seeds 8] [--requests 4000] [--json]

The arms are those of a proxy's configuration. They have one price a token; answers of a higher
effort are longer, and cost 1 : 4 : 15 in the mean. A request has a difficulty, which its words show
in part; the more effort, the more difficult the tasks that are solved. Each answer gets a label.

``cost_over_mix`` is the cost over that of the cheapest fixed mix of efforts that reaches alpha, in
hindsight; what ends short of alpha is bought as by that mix. ``merged`` is what the same
deployments come to as replicas of one candidate, as they were before there were arms: LiteLLM draws
one for each request.

The program ends with status 1 if ``cost_over_mix`` is above 0.75, or a run ends more than 1.5
points below alpha.
"""

import argparse
import json
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.recording import Prompts, Recording
from litellm_messplus.replay.run import Run
from litellm_messplus.replay.summary import Hindsight
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.zoo import Zoo

EFFORTS = ("low", "medium", "high")
TOKENS = (200.0, 800.0, 3000.0)
"""Tokens of an average answer: 1 : 4 : 15."""
SKILL = (0.35, 0.6, 1.0)
"""The difficulty, from 0 to 1, that an effort solves half of the time. Most tasks are easy: a third
in the mean."""
SLOPE = 0.08
"""How sharply success falls there."""
SPREAD = 0.4
"""Deviation of the logarithm of an answer's length."""
WORDS = 24
NOISE = 0.1
"""Deviation of the difficulty that a prompt's words show."""
PRICE = 2e-6
BAR, BELOW = 0.75, 1.5

ENCODER = HashedNgrams()
EASY = ("list", "name", "greet", "spell", "copy", "count", "date", "colour", "repeat", "shorten")
HARD = ("prove", "derive", "optimal", "asymptotic", "schedule", "integral", "refute", "lemma")


def zoo(alpha: float) -> Zoo:
    """Build the zoo from a configuration of one model at three efforts."""
    config = {
        "model_list": [
            {
                "model_name": "assistant",
                "litellm_params": {"model": "openai/thinker", "reasoning_effort": effort},
                "model_info": {"input_cost_per_token": 0.0, "output_cost_per_token": PRICE},
            }
            for effort in EFFORTS
        ],
        "messplus": {"zoos": {"assistant": {"alpha": alpha}}},
    }
    return configured_zoos(load_settings(config), config)["assistant"]


def drawn(requests: int, models: tuple[str, ...], seed: int) -> Recording:
    """Draw requests, and the answers that each effort would give."""
    random = np.random.default_rng(seed)
    difficulty = random.beta(1.0, 2.0, requests)
    solved = 1.0 / (1.0 + np.exp((difficulty[:, None] - np.array(SKILL)) / SLOPE))
    satisfied = (random.random(solved.shape) < solved).astype(np.float64)
    length = np.exp(SPREAD * random.standard_normal(solved.shape) - SPREAD**2 / 2.0)
    longer = (0.5 + difficulty)[:, None]
    cost = PRICE * np.array(TOKENS) * longer * length
    shown = np.clip(difficulty + NOISE * random.standard_normal(requests), 0.0, 1.0)
    texts = [_text(random, share, number) for number, share in enumerate(shown.tolist())]
    prompts = Prompts.encode(texts, ENCODER)
    return Recording("arms", models, "usd", prompts, np.arange(requests), satisfied, cost)


def _text(random: np.random.Generator, hard: float, number: int) -> str:
    """Write a prompt of whose words such a share is hard."""
    kinds = random.random(WORDS) < hard
    words = [str(random.choice(HARD if is_hard else EASY)) for is_hard in kinds]
    return f"{' '.join(words)} {number}"


def played(alpha: float, requests: int, seed: int) -> dict[str, float]:
    """Serve the requests of a seed, by arms and merged."""
    engine = Engine(zoo(alpha), ENCODER, seed)
    recording = drawn(requests, engine.zoo.candidates, seed)
    truth, cost = recording.satisfied, recording.cost
    known = Hindsight.of(truth, cost, alpha)
    outcome = Run(engine, recording, truth).go()
    replica = np.random.default_rng([seed, 1]).integers(len(EFFORTS), size=requests)
    rows = np.arange(requests)
    return {
        **_figures("", outcome.satisfied, outcome.cost.sum(), known, alpha),
        **_figures("merged_", truth[rows, replica], cost[rows, replica].sum(), known, alpha),
        "oracle": known.oracle_cost / known.lp_cost,
    }


def _figures(
    name: str, satisfied: np.ndarray[Any, Any], cost: float, known: Hindsight, alpha: float
) -> dict[str, float]:
    points = 100.0 * (float(satisfied.mean()) - alpha)
    short = len(satisfied) * max(-points, 0.0) / 100.0
    return {
        f"{name}points": points,
        f"{name}cost_over_mix": (float(cost) + known.last_cost * short) / known.lp_cost,
    }


def measure(alpha: float, requests: int, seeds: int, progress: Progress) -> dict[str, Any]:
    """Measure the mean over the seeds."""
    task = progress.add_task("seeds", total=seeds)
    found = []
    for seed in range(seeds):
        found.append(played(alpha, requests, seed))
        progress.advance(task)
    mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    return {
        "simulation": True,
        "arms": list(zoo(alpha).candidates),
        "alpha": alpha,
        "requests": requests,
        "seeds": seeds,
        "cost_over_mix": mean["cost_over_mix"],
        "points": mean["points"],
        "points_worst": min(each["points"] for each in found),
        "oracle_over_mix": mean["oracle"],
        "merged": {
            "cost_over_mix": mean["merged_cost_over_mix"],
            "points": mean["merged_points"],
        },
    }


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alpha", type=float, default=0.9)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 1 or given.requests < 1 or not 0.0 < given.alpha < 1.0:
        parser.error("--seeds and --requests: 1 or more; --alpha: between 0 and 1")
    with threadpool_limits(1), Progress(console=Console(stderr=True)) as progress:
        found = measure(given.alpha, given.requests, given.seeds, progress)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")
    return 0 if found["cost_over_mix"] <= BAR and found["points_worst"] >= -BELOW else 1


if __name__ == "__main__":
    sys.exit(main())
