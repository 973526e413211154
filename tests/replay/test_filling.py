"""A log of served requests is filled up with what was seen on alike prompts, and no more is known
of it than that."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from litellm_messplus.replay.database import Filling
from litellm_messplus.replay.experiment import Experiment
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Prompts, Recording, ReplayError
from tests.support.recordings import ENCODER, recording, synthetic

NAN = float("nan")


def drawn(given: Recording, seed: int = 0) -> Recording:
    return Filling(given).drawn(np.random.default_rng(seed))


def hidden(whole: Recording, is_seen: NDArray[np.bool_]) -> Recording:
    """The recording as a log knows it that has seen only some outcomes."""
    return replace(
        whole,
        satisfied=np.where(is_seen, whole.satisfied, NAN),
        cost=np.where(is_seen, whole.cost, NAN),
    )


def served(whole: Recording, seed: int = 0) -> Recording:
    """One model, drawn at random, answered each request."""
    requests, models = whole.satisfied.shape
    chosen = np.random.default_rng(seed).integers(models, size=(requests, 1))
    return hidden(whole, np.arange(models) == chosen)


def two_kinds(requests: int = 400) -> Recording:
    """Half of the prompts point one way, half another; each model satisfies one half only."""
    kind = np.arange(requests) % 2
    features = np.stack([1 - kind, kind], axis=1).astype(np.float32)
    prompts = Prompts(("",) * requests, (10,) * requests, features, (None,) * requests)
    satisfied = np.stack([kind, 1 - kind], axis=1)
    return replace(recording(satisfied, satisfied * 3.0 + 1.0), prompts=prompts)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_what_was_seen_stays_and_nothing_stays_open(seed: int, share: float) -> None:
    whole = synthetic(60, seed=seed)
    is_seen = np.random.default_rng(seed).random(whole.cost.shape) < share
    is_seen[0] = True

    found = drawn(hidden(whole, is_seen))

    assert found.is_known.all()
    assert (found.satisfied[is_seen] == whole.satisfied[is_seen]).all()
    assert (found.cost[is_seen] == whole.cost[is_seen]).all()


def test_a_prompt_gets_what_was_seen_on_prompts_like_it() -> None:
    whole = two_kinds()

    found = drawn(served(whole))

    assert (found.satisfied == whole.satisfied).all()
    assert (found.cost == whole.cost).all(), "verdict and cost come from one donor"


def test_a_cost_that_is_known_without_its_verdict_is_kept() -> None:
    given = recording([[1.0, 0.0], [NAN, 1.0]], [[1.0, 5.0], [1.25, 6.0]])

    found = drawn(given)

    assert found.satisfied[1, 0] == 1.0
    assert found.cost[1, 0] == 1.25


def test_the_same_seed_draws_the_same() -> None:
    log = served(synthetic(200))
    assert (drawn(log).satisfied == drawn(log).satisfied).all()
    assert (drawn(log).satisfied != drawn(log, seed=1).satisfied).any()


def test_a_rate_that_rests_on_few_labels_differs_from_seed_to_seed_as_it_may() -> None:
    """40 labels of a rate of one half: the standard error is 8 points, with 400 it is 2.5."""

    def spread(labels: int) -> float:
        whole = recording(np.arange(1600).reshape(800, 2) % 4 < 2, np.ones((800, 2)))
        is_seen = np.ones((800, 2), dtype=bool)
        is_seen[labels:, 1] = False
        filling = Filling(hidden(whole, is_seen))
        rates = [
            filling.drawn(np.random.default_rng(seed)).satisfied[:, 1].mean() for seed in range(40)
        ]
        return float(np.std(rates))

    assert spread(40) > 0.02
    assert spread(400) < spread(40)


def test_a_model_of_which_nothing_is_known_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="nothing is known of model 1"):
        Filling(recording([[1.0, NAN]], [[1.0, NAN]]))


def test_a_replay_of_the_log_comes_near_to_a_replay_of_the_truth() -> None:
    """1,000 judged calls tell a rate to 1.5 points, which here moves the cost by a fifth."""
    whole = synthetic(3000)
    plan = Plan(seeds=4, with_baselines=False)

    truth = Experiment([whole], 0.75, plan, ENCODER).go()
    found = Experiment([served(whole)], 0.75, plan, ENCODER).go()

    assert found.score.costs.mean() == pytest.approx(truth.score.costs.mean(), rel=0.3)
    assert found.score.satisfaction == pytest.approx(truth.score.satisfaction, abs=0.02)
    assert [note.split(":")[0].split("% ")[1] for note in found.notes] == [
        "of all outcomes were never seen"
    ]
    assert truth.notes == ()


def test_the_requests_of_which_everything_is_known() -> None:
    given = recording([[1.0, 0.0], [NAN, 1.0]], [[1.0, 5.0], [1.0, 6.0]])

    assert given.known().satisfied.tolist() == [[1.0, 0.0]]
    with pytest.raises(ReplayError, match="no request to which every model's answer was judged"):
        given.take(np.array([1])).known()
