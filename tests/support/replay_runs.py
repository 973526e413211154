"""Runs of a replay over a recording of our own making."""

from typing import Any

import numpy as np
import pytest

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.replay.plan import Stress
from litellm_messplus.replay.recording import Recording
from litellm_messplus.replay.run import Answers, Run, answers, build_engine
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.state.entries import Entry
from tests.support.recordings import ENCODER


def engine_and_answers(
    made: Recording, policy: str, seed: int, stress: Stress
) -> tuple[Engine, Answers]:
    """At alpha 0.7: an engine that knows nothing yet, and what will be said of the answers."""
    settings = ZooSettings.model_validate({"alpha": 0.7, "policy": policy})
    given = answers(made.satisfied, made.models, stress, np.random.default_rng(seed))
    return build_engine(made, settings, ENCODER, seed), given


def build_run(made: Recording, policy: str = "paper", seed: int = 0, **stress: Any) -> Run:
    under = Stress(**stress)
    engine, given = engine_and_answers(made, policy, seed, under)
    return Run(engine, made, given, under.delay)


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
