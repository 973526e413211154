"""A stream over several seeds: what the report says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.replay.experiment import Experiment
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Matrix, ReplayError
from litellm_messplus.replay.summary import (
    Hindsight,
    Outcome,
    ReplayReport,
    Score,
    mix_cost,
    oracle_cost,
    rolling_points,
    window_figures,
)
from tests.support.recordings import ENCODER, recording, synthetic

KEYS = {
    "file",
    "alpha",
    "policy",
    "seeds",
    "requests",
    "cost_total",
    "satisfaction",
    "d_points",
    "below_half_point",
    "below_two_points",
    "explorations",
    "second_answers",
    "model_mix",
    "cost_at_alpha",
    "label_cost",
    "paid_after",
    "lp_cost",
    "oracle_cost",
    "single_model",
    "worst_over_median",
    "spread",
}
MADE = synthetic(250)


def experiment(alpha: float = 0.7, parts: Any = (MADE,), **plan: Any) -> Experiment:
    return Experiment(parts, alpha, Plan(**{"seeds": 2, "with_baselines": False, **plan}), ENCODER)


def test_the_report_has_the_keys_that_are_promised() -> None:
    found = experiment().go().as_dict()

    assert set(found) == KEYS
    assert found["file"] == "synthetic"
    assert found["alpha"] == 0.7
    assert found["policy"] == "adaptive"
    assert found["seeds"] == 2
    assert found["requests"] == 250
    assert sum(found["model_mix"].values()) == pytest.approx(1.0)
    assert found["d_points"] == pytest.approx(100 * (found["satisfaction"] - 0.7))
    assert found["lp_cost"] == pytest.approx(mix_cost(MADE.satisfied, MADE.cost, 0.7))
    assert found["oracle_cost"] == pytest.approx(oracle_cost(MADE.satisfied, MADE.cost, 0.7))
    assert found["single_model"]["large"] == pytest.approx(
        {"satisfaction": MADE.satisfied[:, 2].mean(), "cost": MADE.cost[:, 2].sum()}
    )


@given(st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=4), st.floats(0.0, 9.0))
def test_what_is_short_of_alpha_is_bought_as_by_the_mix(points: list[float], price: float) -> None:
    """And nothing is given back for what is above it."""
    known = Hindsight(100.0, price, 50.0, np.array([0.5]), np.array([100.0]))
    score = Score(0.7, np.full(len(points), 80.0), np.array(points), 0.0, 0.0, {"only": 1.0})
    report = ReplayReport("made", "usd", "adaptive", 200, score, [known] * len(points), {}, {})
    bought = [80.0 + price * 200 * max(-each, 0.0) / 100.0 for each in points]
    assert report.cost_at_alpha == pytest.approx(np.mean(bought))


@pytest.mark.parametrize(
    ("served", "after"), [(60.0, 34), (100.0, 100), (119.0, 2000), (120.0, None), (150.0, None)]
)
def test_labels_have_paid_when_serving_saved_their_cost(served: float, after: int | None) -> None:
    """Labels cost 10 in a run of 200 requests, which the large model alone serves for 120."""
    known = Hindsight(100.0, 1.0, 50.0, np.array([0.5, 0.9]), np.array([40.0, 120.0]))
    mix = {"small": 0.5, "large": 0.5}
    found = Score(0.7, np.array([served + 10.0]), np.zeros(1), 10.0, 0.0, mix)
    report = ReplayReport("made", "usd", "adaptive", 200, found, [known], {}, {})
    assert report.paid_after == after


def test_the_last_request_that_the_mix_buys_costs_what_the_better_model_costs_more() -> None:
    """A half of the requests is satisfied at 1, all at 5: half more costs 4, so each one 8."""
    satisfied: Matrix = np.column_stack([np.arange(10) % 2, np.ones(10)]).astype(np.float64)
    cost = np.broadcast_to([1.0, 5.0], (10, 2))
    known = Hindsight.of(satisfied, cost, 0.8)
    assert known.last_cost == pytest.approx(8.0)
    assert Hindsight.of(satisfied[:, :1], cost[:, :1], 0.8).last_cost == 0.0


@pytest.mark.parametrize(
    ("policy", "baselines"),
    [
        ("adaptive", {"paper", "educated_guessing"}),
        ("paper", {"educated_guessing"}),
    ],
)
def test_baselines_are_reported_like_the_policy(policy: str, baselines: set[str]) -> None:
    under = experiment(policy=policy, with_baselines=True)
    steps = []

    found = under.go(lambda: steps.append(1)).as_dict()

    assert set(found) == KEYS | {"baselines"}
    assert set(found["baselines"]) == baselines
    for score in found["baselines"].values():
        assert score["cost_total"] > 0.0
    assert len(steps) == under.runs


def test_the_baseline_paper_is_the_policy_paper() -> None:
    report = experiment(with_baselines=True, V=0.05, c=0.3).go().as_dict()
    alone = experiment(policy="paper", V=0.05, c=0.3).go().as_dict()

    paper = report["baselines"]["paper"]
    assert paper == {key: alone[key] for key in paper}


def test_guessing_is_none_where_no_model_reaches_alpha() -> None:
    made = recording(np.tile([0.0, 1.0], (50, 1)) * (np.arange(50)[:, None] % 2), np.ones((50, 2)))

    found = experiment(0.9, (made,), with_baselines=True).go().as_dict()

    assert found["baselines"]["educated_guessing"] is None


@pytest.mark.parametrize("policy", ["adaptive", "paper"])
def test_an_experiment_can_be_repeated(policy: str) -> None:
    options: dict[str, Any] = {
        "policy": policy,
        "with_baselines": True,
        "feedback": 0.5,
        "delay": 7,
    }

    assert experiment(**options).go().as_dict() == experiment(**options).go().as_dict()


def test_more_seeds_leave_the_first_runs_as_they_were() -> None:
    short, long = experiment(seeds=1), experiment(seeds=3)
    short.go()
    long.go()

    assert np.array_equal(short.outcomes[0].served, long.outcomes[0].served)
    assert not np.array_equal(long.outcomes[0].served, long.outcomes[1].served)


def test_in_order_keeps_the_order() -> None:
    satisfied = np.repeat([[0.0, 1.0], [1.0, 1.0]], 50, axis=0)
    made = recording(satisfied, np.tile([1.0, 2.0], (100, 1)))
    under = experiment(0.5, (made,), in_order=True)
    under.go()

    for outcome in under.outcomes:
        assert np.array_equal(outcome.satisfied, satisfied[np.arange(100), outcome.served])


def test_parts_follow_one_another() -> None:
    never = recording(np.zeros((60, 2)), np.ones((60, 2)))
    always = recording(np.ones((40, 2)), np.ones((40, 2)))
    under = experiment(0.5, (never, always))
    report = under.go()

    assert report.requests == 100
    assert under.outcomes[0].satisfied.tolist() == [0.0] * 60 + [1.0] * 40


def test_parts_are_shuffled_within_themselves_by_the_seed() -> None:
    under = experiment(0.5, (synthetic(30), synthetic(20)))

    first, second = (session.recording.prompt.tolist() for session in under._sessions())

    for shuffled in (first, second):
        assert [sorted(shuffled[:30]), sorted(shuffled[30:])] == [[*range(30)], [*range(30, 50)]]
    assert first != second


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"alpha": 1.5}, "--alpha: given 1.5"),
        ({"policy": "best"}, "--policy: given 'best'"),
        ({"policy": "paper", "V": -1.0}, "--V: given -1.0"),
        ({"window": 1000}, "--window: given 1000"),
    ],
)
def test_what_cannot_be_honoured_is_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ReplayError) as caught:
        experiment(**changed).go()

    assert told in str(caught.value)
    assert "allowed" in str(caught.value)


def outcome(satisfied: list[float], cost: float = 1.0) -> Outcome:
    count = len(satisfied)
    return Outcome(
        served=np.zeros(count, dtype=np.intp),
        calls=np.ones((count, 1), dtype=np.bool_),
        satisfied=np.array(satisfied),
        cost=np.full(count, cost),
        label_cost=0.0,
        explorations=1,
    )


def test_a_score_by_hand() -> None:
    runs = [outcome([1, 0, 0, 0], 1.0), outcome([1, 1, 0, 0], 2.0), outcome([1, 1, 1, 0], 9.0)]

    score = Score.of(runs, ["only"], alpha=0.51)

    assert score.costs.tolist() == [4.0, 8.0, 36.0]
    assert score.points == pytest.approx([-26.0, -1.0, 24.0])
    assert score.satisfaction == pytest.approx(0.5)
    assert score.below(0.5) == pytest.approx(2 / 3)
    assert score.below(2.0) == pytest.approx(1 / 3)
    assert score.worst_over_median == pytest.approx(4.5)
    assert score.model_mix == {"only": 1.0}


def test_windows_by_hand() -> None:
    run = outcome([1, 1, 0, 0, 1])

    assert rolling_points(run.satisfied, 0.5, 2) == pytest.approx([50, 0, -50, 0])
    assert window_figures([run], 0.5, 2) == pytest.approx(
        {
            "window": 2,
            "d_window": 0.0,
            "d_window_worst": -50.0,
            "windows_below_two_points": 0.25,
        }
    )


def test_with_a_confidence_the_runs_hold_more_and_their_certificates_say_kept() -> None:
    """Every label came, so the certificates know the share of each run."""
    plain, sure = experiment(), experiment(confidence=0.95)
    before, found = plain.go().as_dict(), sure.go().as_dict()

    assert set(found) == {*KEYS, "confidence", "kept", "certificate_width"}
    assert found["d_points"] > before["d_points"]
    assert found["certificate_width"] == pytest.approx(0.0)
    kept = [outcome.satisfied.mean() >= 0.7 for outcome in sure.outcomes]
    assert found["kept"] == np.mean(kept)


def test_the_certificate_of_a_run_knows_only_the_labels_that_came() -> None:
    found = experiment(confidence=0.95, feedback=0.1).go().as_dict()

    assert found["kept"] == 0.0
    assert found["certificate_width"] > 20.0


def test_where_some_answer_the_aim_is_raised_by_just_what_the_certificate_needs() -> None:
    """The lower bound ends at alpha or a little above it, in every run."""
    made = synthetic(1500)
    sure = experiment(parts=(made,), confidence=0.95, feedback=0.5)
    found = sure.go().as_dict()

    assert found["kept"] == 1.0
    assert found["d_points"] < 1.2 * found["certificate_width"]
