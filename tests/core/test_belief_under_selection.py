"""What is believed of a model over all prompts, where a router chooses which ones it answers."""

import numpy as np
import pytest

from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from tests.support.builders import LARGE, SMALL, pair

NAMES = (SMALL, LARGE)
PROMPTS = 400
RUNS = 25
WORTH = 0.15
"""The small model serves unless the large one is expected to satisfy by so much more."""


def truth(hardness: float) -> tuple[float, float]:
    """The small model fails on hard prompts, the large one on few of any."""
    small, large = 0.4 - 1.5 * hardness, 1.2 + 0.3 * hardness
    return 1.0 / (1.0 + float(np.exp(-small))), 1.0 / (1.0 + float(np.exp(-large)))


OVERALL = np.mean([truth(hardness) for hardness in np.random.default_rng(0).normal(size=20_000)], 0)


def errors(seed: int, panel: float) -> list[float]:
    """Learn from a run in which the model that looks better on the prompt answers, and the other
    one too with probability ``panel``; the error of each model's rate."""
    random, predictor = np.random.default_rng(seed), Predictor(NAMES, 2)
    for number in range(PROMPTS):
        hardness = float(random.normal())
        prompt = Prompt(pair(hardness, 1.0))
        small, large = predictor.satisfaction(prompt)
        served = int(large - small > WORTH)
        for model in (served, 1 - served) if random.random() < panel else (served,):
            label = Label(float(random.random() < truth(hardness)[model]))
            predictor.learn(NAMES[model], f"{number}.{model}", f"{number}", prompt, label)
    return [rate - float(true) for rate, true in zip(predictor.rate, OVERALL, strict=True)]


def mean_error(panel: float) -> list[float]:
    found: list[float] = np.mean([errors(seed, panel) for seed in range(RUNS)], axis=0).tolist()
    return found


def test_labels_of_prompts_that_were_chosen_for_a_model_do_not_bias_what_is_believed() -> None:
    """Within two points, over all runs, if one request in ten is answered by both models. Without
    that, the model that looks worse at first is never called again, and stays underrated."""
    assert mean_error(panel=0.1) == pytest.approx([0.0, 0.0], abs=0.02)
    assert mean_error(panel=0.0)[1] < -0.1
