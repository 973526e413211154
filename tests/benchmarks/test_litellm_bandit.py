"""LiteLLM's bandit, driven with labels."""

import numpy as np

from benchmarks.peers import litellm_bandit
from litellm_messplus.replay.plan import Stress
from litellm_messplus.replay.recording import Recording
from litellm_messplus.replay.run import answers
from litellm_messplus.replay.summary import Outcome
from tests.support.recordings import recording, synthetic


def run(made: Recording, seed: int = 0, feedback: float = 1.0) -> Outcome:
    given = answers(
        made.satisfied, made.models, Stress(feedback=feedback), np.random.default_rng(seed)
    )
    kinds = [litellm_bandit.request_type(text) for text in made.prompts.texts]
    return litellm_bandit.run(made, given, kinds, delay=0, seed=seed)


def test_prompts_get_litellms_request_types() -> None:
    assert litellm_bandit.request_type("What is the capital of France?").value == "factual_lookup"
    assert litellm_bandit.request_type("").value == "general"


def test_it_calls_one_model_a_request_and_nothing_else() -> None:
    outcome = run(synthetic(100))

    assert (outcome.calls.sum(axis=1) == 1).all()
    assert outcome.explorations == 0
    assert outcome.queue is None


def test_it_finds_the_model_that_is_good_at_the_same_cost() -> None:
    made = recording(np.tile([0.0, 1.0], (300, 1)), np.ones((300, 2)))

    assert run(made).served[-100:].mean() > 0.9


def test_without_labels_it_learns_nothing() -> None:
    made = recording(np.tile([0.0, 1.0], (400, 1)), np.ones((400, 2)))

    assert 0.4 < run(made, feedback=0.0).served.mean() < 0.6


def test_it_prefers_the_cheap_one_of_equals() -> None:
    made = recording(np.ones((300, 2)), np.tile([1.0, 9.0], (300, 1)))

    assert run(made).served.mean() < 0.2


def test_it_is_seeded() -> None:
    made = synthetic(100)

    assert np.array_equal(run(made, 1).served, run(made, 1).served)
    assert not np.array_equal(run(made, 1).served, run(made, 2).served)
