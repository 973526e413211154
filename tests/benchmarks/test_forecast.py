"""A watched replay: served as before, forecast at the switch, held against what then happened."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forecast import WatchedExperiment, Watching, WatchReport, main, table
from benchmarks.watching import FEWEST, Watch, WatchedRun, happened
from litellm_messplus.core.entries import Decided, Labelled
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Recording, ReplayError
from litellm_messplus.runtime.vocabulary import WARM_UP
from tests.support.recordings import ENCODER, synthetic, write_synthetic
from tests.support.replay_runs import engine_of, entries_of

WATCHED = WARM_UP + 250
LARGE, SMALL = "large", "small"


def watched_run(made: Recording, watch: Watch, seed: int = 0, delay: int = 0) -> WatchedRun:
    engine = engine_of(made, "adaptive", seed)
    return WatchedRun(engine, made, made.satisfied, watch, seed, delay)


@pytest.mark.parametrize("before", [LARGE, SMALL])
def test_what_is_watched_is_served_as_before_and_the_rest_is_routed(before: str) -> None:
    made = synthetic(WATCHED + 200)
    run = watched_run(made, Watch(WATCHED, before, sample=0.3))

    outcome = run.go()

    place = made.models.index(before)
    assert (outcome.served[:WATCHED] == place).all()
    assert set(outcome.served[WATCHED:].tolist()) != {place}
    unseen = outcome.calls[:WATCHED].sum(axis=1) - 1
    assert set(unseen.tolist()) == {0, 1}
    assert unseen.mean() == pytest.approx(0.3, abs=0.06)
    routed = happened(outcome, WATCHED)
    assert routed.requests == 200
    assert routed.satisfaction == outcome.satisfied[WATCHED:].mean()
    assert routed.cost == outcome.cost[WATCHED:].mean()


def test_watched_requests_are_in_a_stream_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the log, so that they move no promise."""
    run = watched_run(synthetic(WATCHED + 50), Watch(WATCHED, LARGE, sample=0.5))

    entries = entries_of(run, monkeypatch)

    levels = [each.service_level for each in entries if isinstance(each, Decided)]
    assert levels == ["default:before"] * WATCHED + ["default"] * 50
    before = [each for each in entries if isinstance(each, Labelled)]
    watched = [each for each in before if each.service_level == "default:before"]
    assert {each.of_choice for each in watched} == {True, False}
    assert {each.given.probability for each in watched if not each.is_served} == {0.5}
    assert {each.given.probability for each in watched if each.is_served} == {None}
    assert {each.of_choice for each in before if each.service_level == "default"} == {None}
    assert run.engine.state.requests == {"default:before": WATCHED, "default": 50}


def test_the_forecast_knows_what_had_arrived_at_the_switch_and_no_more() -> None:
    made = synthetic(WATCHED + 200)
    at_once = watched_run(made, Watch(WATCHED, LARGE))
    late = watched_run(made, Watch(WATCHED, LARGE), delay=100)
    at_once.go()
    late.go()

    assert at_once.forecast.requests == late.forecast.requests == WATCHED - WARM_UP
    assert at_once.forecast.called > 100
    assert 0 < late.forecast.called < at_once.forecast.called


def report(seeds: int, **watch: Any) -> WatchReport:
    watching = Watching(**{"requests": WATCHED, **watch})
    plan = Plan(seeds=seeds, with_baselines=False)
    return WatchedExperiment([synthetic(WATCHED + 500)], 0.8, plan, ENCODER, watching).hold()


def test_what_happens_is_inside_in_nine_runs_of_ten() -> None:
    found = report(10, requests=WATCHED + 250)

    assert found.share(lambda each: each.is_inside) >= 0.9
    assert found.satisfaction_width is not None
    assert found.satisfaction_width < 15.0
    assert found.watch.before == LARGE


def test_without_a_sample_nothing_is_known_and_nothing_is_inside() -> None:
    found = report(2, sample=0.0)

    assert found.satisfaction_width is found.cost_width is None
    assert found.share(lambda each: each.is_inside) == 0.0
    assert "not known" in str(list(table(found).columns[1].cells))


@pytest.mark.parametrize(
    ("watch", "told"),
    [
        ({"requests": WARM_UP}, f"--watch: given {WARM_UP}; allowed: {WARM_UP + FEWEST} to "),
        ({"requests": WATCHED + 490}, f"allowed: {WARM_UP + FEWEST} to {WATCHED + 500 - FEWEST}"),
        ({"before": "huge"}, "--before: given 'huge'; allowed: small, medium, large"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_name(watch: dict[str, Any], told: str) -> None:
    with pytest.raises(ReplayError, match="given") as refused:
        report(1, **watch)
    assert told in str(refused.value)


def test_the_command_prints_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic(tmp_path / "made.csv", synthetic(WARM_UP + 2 * FEWEST))
    given = [str(path), "--alpha", "0.7", "--seeds", "1", "--watch", str(WARM_UP + FEWEST)]
    given += ["--before", "medium", "--sample", "0.8"]
    main([*given, "--json"])
    (found,) = json.loads(capsys.readouterr().out)

    assert (found["watched"], found["routed"]) == (WARM_UP + FEWEST, FEWEST)
    assert (found["before"], found["sample"], found["seeds"]) == ("medium", 0.8, 1)
    assert len(found["runs"]) == 1
    main(given)
    assert "served by medium, 80% sampled" in " ".join(capsys.readouterr().out.split())
