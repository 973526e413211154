"""What is believed of each model at the end of a replay, against its true rate over all prompts, on
the recordings next to the project."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.drift import ALPHAS
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.experiment import Experiment
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.run import Run, build_engine

ENCODER = HashedNgrams()
ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(os.environ.get("MESSPLUS_RECORDED", ROOT.parent / "shared" / "recorded"))
SEEDS = 2
FEWEST = 100
"""Labels from which on a belief is checked."""


def distances(name: str, alpha: float) -> list[float]:
    """Replay; how far each belief is from the truth, in its own standard deviations."""
    found = []
    recording = read_file(RECORDED / f"{name}.csv.gz", ENCODER)
    experiment = Experiment([recording], alpha, Plan(seeds=SEEDS, with_baselines=False), ENCODER)
    for session in experiment._sessions():
        engine = build_engine(recording, experiment.settings, ENCODER, session.seed)
        outcome = Run(engine, session.recording, session.labels).go()
        policy = engine.state.policy
        assert isinstance(policy, AdaptivePolicy)
        known, truth = policy.predictor, session.recording.satisfied.mean(axis=0)
        found += [
            abs(known.rate[place] - float(truth[place])) / known.deviation[place]
            for place in np.flatnonzero(outcome.calls.sum(axis=0) >= FEWEST)
        ]
    return found


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recordings in {RECORDED}")
def test_a_rate_is_believed_within_two_and_a_half_standard_errors_of_the_truth() -> None:
    """In 95 % of all cases, though the prompts of each label were chosen for its model."""
    found = [each for name, alpha in ALPHAS.items() for each in distances(name, alpha)]
    assert len(found) > 50
    assert np.mean(np.array(found) <= 2.5) >= 0.95
