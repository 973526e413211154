"""The benchmark of models that silently change, on a recording made here."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drift import (
    ENCODER,
    FALSE,
    FOUND,
    JUNE,
    MARCH,
    RECOVERY,
    SHORT,
    WINDOW,
    Watched,
    change,
    dated,
    is_held,
    labels_to_alarm,
)
from litellm_messplus.replay.recording import Prompts, Recording
from tests.support.recordings import synthetic

HELD = {
    "recovery_median": RECOVERY,
    "first_hundred": SHORT,
    "alarm_labels": FOUND,
    "false_alarms_per_5000": {"one": 0.0, "two": FALSE},
}


def of_rates(*rates: float, requests: int = 500) -> Recording:
    """Four models of these rates, on prompts that tell nothing."""
    made, draws = synthetic(requests), np.random.default_rng(1)
    satisfied = (draws.random((requests, len(rates))) < rates).astype(np.float64)
    cost = np.broadcast_to([1.0, 1.0, 10.0, 10.0], satisfied.shape)
    prompts = Prompts.encode(made.prompts.texts, ENCODER)
    return replace(made, models=(*MARCH, *JUNE), prompts=prompts, satisfied=satisfied, cost=cost)


def test_both_dates_have_the_same_names_and_the_third_model_costs_twice_as_much() -> None:
    made = of_rates(0.7, 0.95, 0.7, 0.3)
    march, june = dated(made, MARCH, 0), dated(made, JUNE, 0)
    assert march.models == june.models
    assert (march.cost[:, 2] == 2.0 * march.cost[:, 1]).all()
    assert march.satisfied[:, 1].mean() > 0.9
    assert june.satisfied[:, 1].mean() < 0.4


def test_a_change_costs_requests_and_no_change_costs_none() -> None:
    first, recovery = change(of_rates(0.3, 0.95, 0.3, 0.2), 0)
    steady, at_once = change(of_rates(0.3, 0.95, 0.3, 0.95), 0)
    assert first < steady
    assert recovery >= at_once >= WINDOW


def test_labels_and_changes_are_counted() -> None:
    made = of_rates(0.3, 0.95, 0.3, 0.2)
    run = Watched(dated(made, MARCH, 0), 0.85, 0)
    outcome = run.go()
    last = int(outcome.calls[-1].sum())  # their labels come after the last request
    assert run.labels == outcome.calls.sum() - last
    assert run.alarms <= 1


def test_a_drop_is_found_after_some_labels() -> None:
    assert 1.0 <= labels_to_alarm(of_rates(0.9, 0.9, 0.9, 0.9), 0, 0) <= 600.0


@pytest.mark.parametrize(
    "worse",
    [
        {"recovery_median": RECOVERY + 1.0},
        {"first_hundred": SHORT - 1.0},
        {"alarm_labels": FOUND + 1.0},
        {"false_alarms_per_5000": {"one": FALSE + 0.1}},
    ],
)
def test_each_bar_counts(worse: dict[str, object]) -> None:
    assert is_held(HELD)
    assert not is_held(HELD | worse)
