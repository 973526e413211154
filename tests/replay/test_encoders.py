"""Encoders compared: what each figure is."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from litellm_messplus.encoders.lookup import NoEncoder
from litellm_messplus.prediction.encoder import Conversation, Encoder
from litellm_messplus.replay.encoders import Comparison, Prequential, auc, compare, log_loss
from litellm_messplus.replay.experiment import Experiment
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Prompts, Recording, ReplayError
from tests.support.recordings import ENCODER, recording, synthetic

MADE = synthetic(200)


def telling(requests: int = 300) -> Recording:
    """Long prompts are hard for the cheap model; the encoder of the tests sees the length."""
    generator = np.random.default_rng(0)
    is_long = generator.random(requests) < 0.5
    cheap = generator.random(requests) < np.where(is_long, 0.1, 0.9)
    dear = generator.random(requests) < 0.9
    made = recording(np.column_stack([cheap, dear]), np.tile([1.0, 10.0], (requests, 1)))
    texts = [f"{number:03}" + "x" * (400 if long else 0) for number, long in enumerate(is_long)]
    return replace(made, prompts=Prompts.encode(texts, ENCODER))


def compared(made: Recording = MADE, alpha: float = 0.7, seeds: int = 2) -> Comparison:
    encoders: dict[str, Encoder] = {"length": ENCODER, "none": NoEncoder()}
    return compare(made, encoders, alpha, seeds)


def test_the_figures_that_are_promised() -> None:
    found = asdict(compared())

    assert {key: found[key] for key in ("file", "unit", "requests", "alpha", "seeds")} == {
        "file": "synthetic",
        "unit": "J",
        "requests": 200,
        "alpha": 0.7,
        "seeds": 2,
    }
    assert list(found["encoders"]) == list(found["alone"]) == ["length", "none"]
    assert set(found["encoders"]["none"]) == {
        *("log_loss", "log_loss_mean", "auc", "cost_total", "d_points"),
        *("ms_per_prompt", "ms_per_update"),
    }


def test_without_reading_the_predictions_are_the_running_means() -> None:
    found = compared(telling()).alone["none"]

    assert found.log_loss == pytest.approx(found.log_loss_mean)
    assert found.auc == 0.5


def test_an_encoder_that_sees_what_matters_gains() -> None:
    found = compared(telling()).alone

    assert found["length"].log_loss_mean == found["none"].log_loss_mean
    assert found["length"].log_loss < found["none"].log_loss - 0.05
    assert found["length"].auc is not None
    assert found["length"].auc > 0.6
    assert found["length"].cost_total < found["none"].cost_total


def test_the_surface_shows_the_length_with_every_encoder() -> None:
    found = compared(telling())

    for name in ("length", "none"):
        whole = found.encoders[name]
        assert whole.log_loss < found.alone["none"].log_loss - 0.05
        assert whole.log_loss_mean == found.alone["none"].log_loss_mean
        assert whole.cost_total < found.alone["none"].cost_total


def test_cost_and_points_are_those_of_a_replay() -> None:
    plan = Plan(seeds=2, with_baselines=False)
    replayed = Experiment([MADE], 0.7, plan, ENCODER).go().as_dict()

    found = compared().encoders["length"]

    assert found.cost_total == replayed["cost_total"]
    assert found.d_points == replayed["d_points"]


def test_time_is_measured() -> None:
    for found in compared().encoders.values():
        assert 0.0 < found.ms_per_prompt < 100.0
        assert 0.0 < found.ms_per_update < 100.0


def test_a_comparison_can_be_repeated() -> None:
    def lasting(found: Comparison) -> Any:
        return [
            (each.log_loss, each.log_loss_mean, each.auc, each.cost_total, each.d_points)
            for each in (*found.encoders.values(), *found.alone.values())
        ]

    assert lasting(compared()) == lasting(compared())


def test_every_run_is_counted() -> None:
    steps = []

    compare(MADE, {"a": ENCODER, "b": NoEncoder()}, 0.7, 3, lambda: steps.append(1))

    assert len(steps) == 4 * 2 * 3


def test_predictions_are_made_before_the_labels_are_known() -> None:
    """One request: nothing is known, and both models' predictions are the first guess."""
    run = Prequential.of(recording([[1, 0]], [[1, 2]]), 2, seed=0)

    assert run.predicted.tolist() == [[pytest.approx(0.7), pytest.approx(0.7)]]
    assert run.mean.tolist() == run.predicted.tolist()


def test_every_seed_has_an_order_of_its_own() -> None:
    first, second = (Prequential.of(MADE, 2, seed) for seed in (0, 1))

    assert not np.array_equal(first.label, second.label)
    assert np.array_equal(
        first.label, MADE.satisfied[np.random.default_rng(0).permutation(len(MADE))]
    )


def test_log_loss_by_hand() -> None:
    predicted, label = np.array([[0.8, 0.3]]), np.array([[1.0, 0.0]])

    assert log_loss(predicted, label) == pytest.approx(-(np.log(0.8) + np.log(0.7)) / 2)


@pytest.mark.parametrize(
    ("score", "label", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], 1.0),
        ([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], 0.0),
        ([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], 0.75),
        ([0.5, 0.5, 0.5], [0, 1, 1], 0.5),
        ([0.1, 0.5, 0.5, 0.9], [0, 0, 1, 1], 0.875),
        ([0.1, 0.2], [1, 1], None),
        ([0.1, 0.2], [0, 0], None),
    ],
)
def test_auc_by_hand(score: list[float], label: list[int], expected: float | None) -> None:
    assert auc(np.array(score), np.array(label)) == expected


def test_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    generator = np.random.default_rng(3)
    score, label = generator.integers(0, 6, 80), generator.integers(0, 2, 80)
    above = score[label == 1][:, None] - score[label == 0][None, :]

    assert auc(score, label) == pytest.approx(((above > 0) + 0.5 * (above == 0)).mean())


def test_auc_is_unknown_where_every_model_always_satisfies() -> None:
    assert compared(recording(np.ones((40, 2)), np.ones((40, 2)))).encoders["length"].auc is None


def test_texts_that_were_not_kept_are_refused() -> None:
    lost = replace(MADE.prompts, texts=("", *MADE.prompts.texts[1:]))

    with pytest.raises(ReplayError, match="given 1 without their text"):
        compared(replace(MADE, prompts=lost))


def test_not_reading() -> None:
    encoder = NoEncoder()

    assert encoder.read(Conversation.of_text("anything")) == ""
    assert encoder.encode(["", "b"]).tolist() == [[0.0], [0.0]]
