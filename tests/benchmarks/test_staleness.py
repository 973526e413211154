"""A replay whose deciders see the learner's state now and then."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.staleness import StaleRun, is_held, main, session
from litellm_messplus.core.engine import Engine
from litellm_messplus.replay.run import Run, build_engine
from litellm_messplus.settings.schema import ZooSettings
from tests.support.recordings import ENCODER, synthetic, write_synthetic

MADE = synthetic(150)
SETTINGS = ZooSettings(alpha=0.8)


def engine() -> Engine:
    return build_engine(MADE, SETTINGS, ENCODER, 0)


def test_a_state_at_each_request_decides_as_the_replay_does() -> None:
    taken, said = session(MADE, 400, 0.5, 0)
    deciders = [engine() for _ in range(4)]

    stale = StaleRun(engine(), deciders, taken, said, 1, 0).go()

    fresh = Run(engine(), taken, said).go()
    assert np.array_equal(stale.served, fresh.served)
    assert np.array_equal(stale.calls, fresh.calls)
    assert stale.queue is not None
    assert fresh.queue is not None
    assert np.array_equal(stale.queue, fresh.queue)


def test_between_two_states_the_queue_stands_and_own_decisions_count_for_everyone() -> None:
    taken, said = session(MADE, 400, 0.5, 0)
    deciders = [engine() for _ in range(4)]

    stale = StaleRun(engine(), deciders, taken, said, 50, 0).go()

    assert stale.queue is not None
    published = stale.queue.reshape(-1, 50)
    assert (published == published[:, :1]).all()
    assert len(set(published[:, 0])) > 4
    assert {each.deciders for each in deciders} == {4}
    own = [sum(map(len, decider._unfolded.values())) for decider in deciders]
    assert sum(own) == 50  # those since the last state, each known to who decided it
    assert 0 < max(own) < 50


def test_the_figures_name_what_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_synthetic(tmp_path / "made.csv", MADE)
    options = "--requests 700 --skip 100 --seeds 2 --every 1 200 --deciders 3 --json"
    monkeypatch.setattr("sys.argv", ["staleness", str(path), *options.split()])

    status = main()

    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["seeds"], found["deciders"]) == ("made.csv", [0, 1], 3)
    for every in (1, 200):
        assert 0.0 < found[f"satisfaction_at_{every}"] < 1.0
        assert found[f"cost_at_{every}"] > 0.0
        assert -1.0 < found[f"shortfall_at_{every}"] < 1.0
    assert status == (not is_held(found))


@pytest.mark.parametrize(
    ("cost", "satisfaction", "held"), [(1.04, 0.8, True), (1.06, 0.8, False), (1.0, 0.78, False)]
)
def test_what_is_held(cost: float, satisfaction: float, held: bool) -> None:
    found = {"alpha": 0.8, "cost_at_1": 1.0, "cost_at_200": cost}
    assert is_held({**found, "satisfaction_at_200": satisfaction}) is held
