"""From windows to a profile: what can be used, what a token costs, and the file that says so."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.energy.measure import Cell, Grid, Idle, MeasuredWindow, Usage, idle_of
from litellm_messplus.energy.meter import FitError, NotMeasuredError, Reading, reading
from litellm_messplus.energy.profile import (
    AtConcurrency,
    Costs,
    EnergyProfile,
    GridOfProfile,
    Sample,
    fit,
    load_profile,
    screened,
)
from litellm_messplus.runtime.errors import ConfigurationError

joules = st.floats(min_value=1e-3, max_value=10.0)
GRID = Grid(concurrency=(4,), repeats=2)


def windows(
    costs: tuple[float, float, float], noise: float = 0.0, seed: int = 0, grid: Grid = GRID
) -> list[Sample]:
    """Every window of the grid, of 3 to 20 requests, with relative noise."""
    draw = np.random.default_rng(seed)
    found = []
    for cell in grid.cells():
        requests = int(draw.integers(3, 21))
        work = (requests * cell.prompt_tokens, requests * cell.completion_tokens, requests)
        exact = sum(cost * each for cost, each in zip(costs, work, strict=True))
        found.append(Sample(cell, *work, exact * float(draw.normal(1.0, noise))))
    return found


def costs_of(found: Costs) -> list[float]:
    return [getattr(found, name) for name in Costs.model_fields]


@given(st.tuples(joules, joules, joules | st.just(0.0)))
def test_without_noise_the_costs_are_recovered_exactly(costs: tuple[float, float, float]) -> None:
    found = fit(windows(costs))

    assert costs_of(found) == pytest.approx(costs, rel=1e-6, abs=1e-9)
    assert found.relative_error < 1e-6
    assert found.windows == len(GRID.cells())


@given(st.integers(min_value=0, max_value=2**31))
def test_under_noise_the_costs_of_tokens_are_recovered_within_a_tenth(seed: int) -> None:
    found = fit(windows((0.05, 0.5, 2.0), noise=0.01, seed=seed))

    assert found.joules_per_prompt_token == pytest.approx(0.05, rel=0.1)
    assert found.joules_per_completion_token == pytest.approx(0.5, rel=0.1)


@given(
    st.lists(joules, min_size=len(GRID.cells()), max_size=len(GRID.cells())),
    st.integers(min_value=0, max_value=2**31),
)
def test_no_cost_is_below_zero_whatever_was_read(read: list[float], seed: int) -> None:
    work = windows((1.0, 1.0, 1.0), seed=seed)
    found = fit([replace(each, joules=joule) for each, joule in zip(work, read, strict=True)])

    assert min(costs_of(found)) >= 0
    assert max(costs_of(found)) > 0


COSTS = (0.05, 0.5, 2.0)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (windows(COSTS)[:5], "5 windows can be used, and 6 are the least"),
        (windows(COSTS)[:1] * 8, "distinguish"),
        ([replace(each, completion_tokens=0) for each in windows(COSTS)], "distinguish"),
    ],
    ids=["too few windows", "of one length", "no completion tokens are counted"],
)
def test_windows_that_tell_no_costs_are_refused(samples: list[Sample], words: str) -> None:
    with pytest.raises(FitError, match=words):
        fit(samples)


def test_the_relative_error_is_that_of_windows_the_fit_has_not_seen() -> None:
    """With 8 % of noise, each cell is predicted about that far off by the others."""
    errors = [fit(windows((0.05, 0.5, 2.0), 0.08, seed)).relative_error for seed in range(40)]

    assert 0.07 < np.mean(errors) < 0.11


def test_standard_errors_are_the_spread_of_the_estimates() -> None:
    costs = (0.05, 0.5, 20.0)
    fits = [fit(windows(costs, 0.05, seed)) for seed in range(200)]

    spread = np.std([costs_of(each) for each in fits], axis=0)
    stated = np.mean([costs_of(each.standard_errors) for each in fits], axis=0)
    assert stated == pytest.approx(spread, rel=0.25)


# Which windows can be used

IDLE = Idle(watts=60.0, noise_watts=0.5)
CELL = Cell(64, 16, 4)
USAGE = Usage(10, 640, 160)
PLAUSIBLE = 2000.0


def window(found: Reading, usage: Usage | None = USAGE) -> MeasuredWindow:
    return MeasuredWindow(CELL, usage, found)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Reading(0.0, 100.0), "no time passed"),
        (Reading(math.nan, 100.0), "no time passed"),
        (Reading(5.0, 5 * PLAUSIBLE + 1), "more power than plausible"),
        (Reading(5.0, math.nan), "more power than plausible"),
        (Reading(5.0, -10.0), "less energy than idle"),
        (Reading(5.0, 5 * 50.0), "less energy than idle"),
        (Reading(5.0, 5 * 60.1), "not to be told from idle"),
    ],
)
def test_a_useless_reading_is_dropped_and_counted_by_why(found: Reading, why: str) -> None:
    kept = window(Reading(5.0, 800.0))

    result = screened([kept, window(found), window(found)], IDLE, PLAUSIBLE)

    assert [sample.joules for sample in result.samples] == [500.0]
    assert result.dropped == {why: 2}
    backwards = screened([window(Reading(5.0, -1.0))], Idle(0.0, 9.0), PLAUSIBLE)
    assert backwards.dropped == {"less energy than idle": 1}
    failed = screened([window(Reading(5.0, 800.0), usage=None)], IDLE, PLAUSIBLE)
    assert (failed.samples, failed.dropped) == ((), {"a request failed": 1})


@given(st.floats(min_value=0.1, max_value=100), st.floats(min_value=62.0, max_value=PLAUSIBLE))
def test_what_is_kept_is_what_was_read_less_idle(seconds: float, watts: float) -> None:
    (sample,) = screened([window(Reading(seconds, watts * seconds))], IDLE, PLAUSIBLE).samples

    assert sample.joules == pytest.approx((watts - IDLE.watts) * seconds)
    assert (sample.requests, sample.prompt_tokens, sample.completion_tokens) == (10, 640, 160)


def test_sensors_are_summed_and_a_counter_that_ran_backwards_is_not_hidden() -> None:
    assert reading(2.0, {"gpu 0": 100.0, "gpu 1": 50.0, "cpu 0": 30.0}) == Reading(2.0, 180.0)
    assert reading(5.0, {"gpu 0": 1000.0, "gpu 1": -3.0}).joules == -3.0


def test_idle_power_is_the_mean_and_its_noise_the_spread_of_windows_that_are_not_absurd() -> None:
    good, absurd = Reading(2.0, 120.0), Reading(2.0, 1e9)
    found = idle_of([Reading(2.0, 118.0), good, Reading(2.0, 122.0)], PLAUSIBLE)
    assert found == Idle(60.0, 1.0)
    assert idle_of([good, absurd, good, Reading(2.0, -1.0)], PLAUSIBLE) == Idle(60.0, 0.0, 2)
    with pytest.raises(NotMeasuredError, match="of 3 windows without requests 1 can be used"):
        idle_of([absurd, Reading(2.0, -1.0), Reading(2.0, 5.0)], PLAUSIBLE)


@pytest.mark.parametrize(
    ("joules", "named"), [({}, "no sensor"), ({"gpu 0": 0.0}, "gpu 0"), ({"a": 1.0, "b": 0.0}, "b")]
)
def test_a_silent_sensor_is_not_zero_joules(joules: dict[str, float], named: str) -> None:
    with pytest.raises(NotMeasuredError, match=f"^{named} counted 0 J in 5 s, which is not"):
        reading(5.0, joules)


# The file


def profile(**changed: Any) -> EnergyProfile:
    fitted: dict[str, Any] = {
        "joules_per_prompt_token": 0.02,
        "joules_per_completion_token": 0.5,
        "joules_per_request": 2.0,
        "standard_errors": Costs(
            joules_per_prompt_token=0.001,
            joules_per_completion_token=0.01,
            joules_per_request=0.3,
        ),
        "relative_error": 0.06,
        "windows": 18,
    }
    rest: dict[str, Any] = {
        "concurrency": 4,
        "model": "llama-1b",
        "endpoint": "http://gpu-1:8001/v1",
        "meter": "zeus",
        "sensors": ("gpu 0",),
        "measured_at": datetime(2025, 3, 1, 12, 0, tzinfo=UTC),
        "idle_watts": 61.5,
        "idle_noise_watts": 0.4,
        "dropped": {"a request failed": 1},
        "grid": GridOfProfile(
            prompt_tokens=(64, 256),
            completion_tokens=(16, 64),
            concurrency=(1, 4),
            repeats=2,
            seconds=5.0,
        ),
        "other_concurrencies": (AtConcurrency(concurrency=1, **fitted),),
    }
    return EnergyProfile(**{**fitted, **rest, **changed})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "llama-1b.energy.yaml"


def refusal(path: Path, model: str = "llama-1b") -> str:
    with pytest.raises(ConfigurationError) as refused:
        load_profile(path, model=model)
    assert str(path) in str(refused.value)
    assert "model_info.messplus.energy_profile" in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("error", [0.06, 0.25])
def test_a_profile_is_read_back_as_it_was_written(path: Path, error: float) -> None:
    """The file begins with what people look for."""
    written = profile(relative_error=error)
    written.write(path)
    assert load_profile(path, model="llama-1b") == written
    assert written.joules(100, 10) == pytest.approx(100 * 0.02 + 10 * 0.5 + 2.0)
    keys = list(yaml.safe_load(path.read_text()))
    assert keys[:4] == ["format", "model", "concurrency", "joules_per_prompt_token"]
    assert path.read_text().startswith("# What a call to this model costs")


def test_a_profile_of_another_model_or_with_too_large_an_error_is_refused(path: Path) -> None:
    missing = refusal(path)
    assert "No such file" in missing
    assert "messplus profile --model" in missing
    profile(relative_error=0.251).write(path)
    too_large = refusal(path)
    assert "0.251" in too_large
    assert "at most 0.25" in too_large
    other = refusal(path, model="llama-8b")
    assert "a profile of llama-1b" in other
    assert "a profile of llama-8b" in other
    for text in ("", "- 1", "a: [", "just words"):
        path.write_text(text)
        refusal(path)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda it: it.pop("relative_error"), "relative_error"),
        (lambda it: it.update(joules_per_completion_token=-1.0), "joules_per_completion_token"),
        (lambda it: it.update(joules_per_request=float("nan")), "joules_per_request"),
        (lambda it: it.update(relative_error=float("nan")), "relative_error"),
        (lambda it: it.update(format=2), "format"),
        (lambda it: it.update(joules_per_promt_token=1.0), "joules_per_promt_token"),
        (lambda it: it["standard_errors"].pop("joules_per_request"), "joules_per_request"),
    ],
)
def test_a_malformed_profile_is_refused_by_its_key(path: Path, change: Change, key: str) -> None:
    profile().write(path)
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))

    assert re.search(rf"[ .]{key}: given", refusal(path))
