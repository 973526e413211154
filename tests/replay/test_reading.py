"""Reading answers in a replay: it saves where they show something, and else changes nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litellm_messplus.core.answer import ANSWER_NUMBERS, OWN_SCORE
from litellm_messplus.replay.experiment import Experiment, load
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.plan import Plan, Reading
from litellm_messplus.replay.recording import Recording, ReplayError
from litellm_messplus.replay.run import simulated_checker
from litellm_messplus.settings.promise import SecondAnswer
from tests.support.recordings import ENCODER, rows, synthetic, write_csv

AUTO = Reading(SecondAnswer.AUTO)
ALPHA = 0.75


def replayed(recording: Recording, reading: Reading, **plan: Any) -> dict[str, Any]:
    chosen = Plan(**{"seeds": 2, "with_baselines": False, "reading": reading, **plan})
    return Experiment((recording,), ALPHA, chosen, ENCODER).go().as_dict()


def test_a_good_checker_saves_and_the_promise_is_kept() -> None:
    made = synthetic(1000)
    off, read = (replayed(made, each) for each in (Reading(), Reading(SecondAnswer.AUTO, 0.95)))
    assert off["second_answers"] == 0.0
    assert read["second_answers"] > 70.0
    assert read["cost_at_alpha"] < 0.9 * off["cost_at_alpha"]
    assert read["d_points"] > -1.0


def test_answers_that_show_nothing_give_the_decisions_of_off_bit_for_bit() -> None:
    made = synthetic(400)
    silent = np.zeros((*made.satisfied.shape, len(ANSWER_NUMBERS)), np.float32)
    plan = Plan(seeds=1, with_baselines=False)
    found = []
    for recording, reading in ((made, Reading()), (replace(made, answers=silent), AUTO)):
        experiment = Experiment((recording,), ALPHA, replace(plan, reading=reading), ENCODER)
        experiment.go()
        found.append(experiment.outcomes[0])
    assert (found[0].calls == found[1].calls).all()
    assert found[0].queue is not None
    assert found[1].queue is not None
    assert (found[0].queue == found[1].queue).all()


def test_a_useless_checker_costs_nearly_nothing() -> None:
    made = synthetic(1000)
    readings = Reading(), Reading(SecondAnswer.AUTO, 0.5)
    off, read = (replayed(made, each) for each in readings)
    assert read["cost_at_alpha"] < 1.05 * off["cost_at_alpha"]
    assert read["second_answers"] < 0.02 * 1000


def test_a_checker_that_costs_is_paid_on_every_call_and_known_to_the_plan() -> None:
    """All costs rise alike, so the same models serve; the yardsticks have no checker."""
    made = synthetic(400)
    free, paid = (
        replayed(made, Reading(SecondAnswer.AUTO, 0.9, share), with_baselines=True)
        for share in (0.0, 0.25)
    )
    assert paid["lp_cost"] == free["lp_cost"]
    assert paid["baselines"] == free["baselines"]
    assert paid["cost_total"] == pytest.approx(1.25 * free["cost_total"], rel=0.05)
    assert paid["cost_at_alpha"] > 1.15 * free["cost_at_alpha"]
    assert paid["second_answers"] == pytest.approx(free["second_answers"], rel=0.2)


def test_the_simulated_checker_has_its_area_under_the_curve() -> None:
    truth = (np.random.default_rng(0).random((4000, 1)) < 0.6).astype(np.float64)
    score = simulated_checker(truth, 0.8, 0)[:, 0, ANSWER_NUMBERS.index(OWN_SCORE)]
    good, bad = score[truth[:, 0] == 1.0], score[truth[:, 0] == 0.0]
    assert np.mean(good[:1000, None] > bad[None, :1000]) == pytest.approx(0.8, abs=0.02)


def answered(column: str, value: str) -> list[dict[str, Any]]:
    return [{**row, f"cheap|{column}": value, f"dear|{column}": value} for row in rows()]


def test_answers_and_scores_of_a_file_are_read_only_when_wanted(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "zoo.csv", answered("answer", "The answer is 4."))
    assert read_file(path, ENCODER).answers is None
    found = read_file(path, ENCODER, reads=True).answers
    assert found is not None
    assert found.shape == (5, 2, len(ANSWER_NUMBERS))
    assert (found[..., ANSWER_NUMBERS.index("names its result")] == 1.0).all()
    scored = read_file(
        write_csv(tmp_path / "scored.csv", answered("score", "0.5")), ENCODER, reads=True
    ).answers
    assert scored is not None
    assert (scored[..., ANSWER_NUMBERS.index(OWN_SCORE)] == 0.5).all()


def test_a_file_without_answers_and_a_score_that_is_no_number_are_refused(tmp_path: Path) -> None:
    bare = write_csv(tmp_path / "bare.csv", rows())
    wrong = write_csv(tmp_path / "wrong.csv", answered("score", "good"))
    with pytest.raises(ReplayError, match=r"given no columns of answers.*'cheap\|answer'"):
        load(str(bare), ENCODER, reads=True)
    with pytest.raises(ReplayError, match=r"'cheap\|score', request 1: given 'good'"):
        read_file(wrong, ENCODER, reads=True)
