"""Energy profiles by hand: nothing in them was measured."""

from datetime import UTC, datetime
from pathlib import Path

from litellm_messplus.energy.profile import Costs, EnergyProfile, GridOfProfile

PROMPT, COMPLETION, REQUEST = 0.5, 3.0, 7.0
"""Joules of each token and of each call."""


def write_profile(
    path: Path,
    model: str = "mine",
    relative_error: float = 0.1,
    sensors: tuple[str, ...] = ("none",),
) -> str:
    """A file as `messplus profile` writes it; returns its path."""
    costs = {
        "joules_per_prompt_token": PROMPT,
        "joules_per_completion_token": COMPLETION,
        "joules_per_request": REQUEST,
    }
    EnergyProfile(
        **costs,
        standard_errors=Costs.model_validate(dict.fromkeys(costs, 0.0)),
        relative_error=relative_error,
        windows=9,
        concurrency=1,
        model=model,
        endpoint="http://localhost",
        meter="by hand",
        sensors=sensors,
        measured_at=datetime(2026, 1, 1, tzinfo=UTC),
        idle_watts=50.0,
        idle_noise_watts=1.0,
        dropped={},
        grid=GridOfProfile(
            prompt_tokens=(64,), completion_tokens=(64,), concurrency=(1,), repeats=1, seconds=1.0
        ),
    ).write(path)
    return str(path)
