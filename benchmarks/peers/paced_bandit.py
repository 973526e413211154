"""ParetoBandit (arXiv 2604.00136), the installed package, fed with labels and paced to a spend.

It holds a spend and not a rate, so it is given the one thing that is unknown beforehand: what the
hindsight mix spends a request. It reads prompts as it does by default, by 25 principal components
and a constant, which are fitted here on all prompts of the recording, without any label: on the
features and surfaces that this project reads, as its own encoder would have to be downloaded. It
begins without priors, with the constants that its authors chose for that, and without a fixed
penalty of cost, as in their paced experiments. It knows the price of a model as its mean recorded
cost, and learns after each answer what that one cost.
"""

import logging
import math
from importlib import metadata, util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.replay.recording import Matrix, Prompts, Recording
from litellm_messplus.replay.run import Late
from litellm_messplus.replay.summary import Outcome

PACKAGE = "pareto_bandit"
DISTRIBUTION = "paretobandit"
COMPONENTS = 25
SURFACE_SCALE = 0.1
"""The deviation of each number of the surface, next to features of length 1. Of four ways to join
them, this was the cheapest for ParetoBandit on tiny, zeroeval_mix and llmdrift."""

Contexts = NDArray[np.float64]
"""The features of each distinct prompt, shape (prompts, components + 1)."""


def missing() -> str | None:
    """Return why this peer cannot run here; None if it can."""
    if util.find_spec(PACKAGE) is None:
        return f"{DISTRIBUTION} is not installed: pip install 'litellm-messplus[peers]'"
    return None


def version() -> str:
    """Return the version of the installed package."""
    return metadata.version(DISTRIBUTION)


def contexts(prompts: Prompts) -> Contexts:
    """Fit whitened principal components on what is read of the prompts, and add the constant."""
    numbers = np.array([each for each in prompts.surfaces if each is not None], dtype=np.float64)
    deviation = numbers.std(axis=0)
    scaled = SURFACE_SCALE * numbers / np.where(deviation > 0.0, deviation, 1.0)
    read = np.hstack([prompts.features.astype(np.float64), scaled])
    left, sizes, _ = np.linalg.svd(read - read.mean(axis=0), full_matrices=False)
    count = min(COMPONENTS, int((sizes > 1e-9 * max(sizes[0], 1.0)).sum()))
    whitened = left[:, :count] * np.sqrt(max(len(read) - 1, 1))
    return np.hstack([whitened, np.ones((len(read), 1))])


class PacedBandit:
    """The router of the package; ``costs`` are the models' prices, ``spend`` what a request may
    cost, in the same unit."""

    def __init__(self, costs: dict[str, float], spend: float, dimension: int, seed: int) -> None:
        from pareto_bandit import BanditRouter
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.config import BEST_K3_TABULA_RASA_HPARAMS as COLD
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.types import RouterConfig

        logging.getLogger(PACKAGE).setLevel(logging.ERROR)
        prices = {
            model: {"input_cost_per_m": 1000.0 * cost, "output_cost_per_m": 1000.0 * cost}
            for model, cost in costs.items()
        }
        self._router = BanditRouter.create(
            prices,
            priors="none",
            feature_service=FeatureService.for_precomputed(dimension),
            alpha=COLD["alpha"],
            forgetting_factor=COLD["forgetting_factor"],
            cost_penalty=0.0,
            budget_pacer=BudgetPacer(spend),
            bandit_seed=seed,
            config=RouterConfig(
                market_cost_floor=min(costs.values()), market_cost_ceiling=max(costs.values())
            ),
        )

    def pick(self, context: NDArray[np.float64]) -> tuple[str, Any]:
        """Pick the model for a prompt; the second value names the decision."""
        model, log = self._router.route(context)
        return model, log

    def learn(self, log: Any, label: float) -> None:
        """Learn a verdict in [0, 1], and what the call cost."""
        self._router.process_feedback(log.request_id, reward=label)


def run(
    recording: Recording, labels: Matrix, read: Contexts, spend: float, delay: int, seed: int
) -> Outcome:
    """Run one pass in the recording's order; ``spend`` is what a request may cost."""
    models = recording.models
    costs = dict(zip(models, recording.cost.mean(axis=0).tolist(), strict=True))
    bandit = PacedBandit(costs, spend, read.shape[1], seed)
    late: Late[tuple[Any, float]] = Late(delay)
    served = np.zeros(len(recording), dtype=np.intp)
    for request, prompt in enumerate(recording.prompt.tolist()):
        for arrived in late.due(request):
            bandit.learn(*arrived)
        chosen, log = bandit.pick(read[prompt])
        model = models.index(chosen)
        served[request] = model
        log.cost_usd = float(recording.cost[request, model])
        if not math.isnan(label := float(labels[request, model])):
            late.add(request, (log, label))
    return Outcome.of_served(served, recording.satisfied, recording.cost)
