"""A profile is read back as it was written; what must not be used is refused with its figure."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from litellm_messplus.energy.profile import (
    AtConcurrency,
    Costs,
    EnergyProfile,
    GridOfProfile,
    load_profile,
)
from litellm_messplus.errors import ConfigurationError


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


def test_a_profile_is_read_back_as_it_was_written(path: Path) -> None:
    profile().write(path)

    assert load_profile(path, model="llama-1b") == profile()


def test_the_file_begins_with_what_people_look_for(path: Path) -> None:
    profile().write(path)

    keys = list(yaml.safe_load(path.read_text()))
    assert keys[:4] == ["format", "model", "concurrency", "joules_per_prompt_token"]
    assert path.read_text().startswith("# What a call to this model costs")


def test_a_call_costs_its_tokens_and_the_request(path: Path) -> None:
    assert profile().joules(100, 10) == pytest.approx(100 * 0.02 + 10 * 0.5 + 2.0)


def test_a_profile_of_another_model_is_refused_and_both_are_named(path: Path) -> None:
    profile().write(path)

    message = refusal(path, model="llama-8b")
    assert "a profile of llama-1b" in message
    assert "a profile of llama-8b" in message


def test_a_profile_with_too_large_an_error_is_refused_with_the_figure(path: Path) -> None:
    profile(relative_error=0.251).write(path)

    message = refusal(path)
    assert "0.251" in message
    assert "at most 0.25" in message


def test_an_error_at_the_limit_is_allowed(path: Path) -> None:
    profile(relative_error=0.25).write(path)

    assert load_profile(path, model="llama-1b").relative_error == 0.25


def test_a_missing_file_is_refused_and_the_command_is_named(path: Path) -> None:
    message = refusal(path)
    assert "No such file" in message
    assert "messplus profile --model" in message


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "just words"])
def test_a_file_that_is_no_profile_is_refused(path: Path, text: str) -> None:
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
