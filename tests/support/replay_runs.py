"""Runs of a replay over a recording of our own making."""

import numpy as np
import pytest

from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Entry
from litellm_messplus.replay.recording import Recording
from litellm_messplus.replay.run import Run, build_engine, drawn_labels
from litellm_messplus.settings.schema import ZooSettings
from tests.support.recordings import ENCODER


def engine_of(made: Recording, policy: str, seed: int) -> Engine:
    """At alpha 0.7, an engine that knows nothing yet."""
    settings = ZooSettings.model_validate({"alpha": 0.7, "policy": policy})
    return build_engine(made, settings, ENCODER, seed)


def build_run(
    made: Recording, policy: str = "paper", seed: int = 0, feedback: float = 1.0, delay: int = 0
) -> Run:
    labels = drawn_labels(made.satisfied, feedback, np.random.default_rng(seed))
    return Run(engine_of(made, policy, seed), made, labels, delay)


def entries_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """What the engine is fed in the course of the run."""
    fed: list[Entry] = []
    apply = run.engine.apply

    def record(entry: Entry) -> None:
        fed.append(entry)
        apply(entry)

    monkeypatch.setattr(run.engine, "apply", record)
    run.go()
    return fed
