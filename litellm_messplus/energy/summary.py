"""From the windows that were measured to the profile."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.energy.errors import FitError
from litellm_messplus.energy.fit import Fit, Sample, fit
from litellm_messplus.energy.grid import Grid
from litellm_messplus.energy.measure import Idle, Measured
from litellm_messplus.energy.meter import Meter, plausible_watts
from litellm_messplus.energy.profile import AtConcurrency, EnergyProfile
from litellm_messplus.energy.screen import screened


def summarise(
    measured: Measured, grid: Grid, meter: Meter, *, model: str, url: str
) -> EnergyProfile:
    """Drop what cannot be used, and fit every concurrency by itself.

    Requests that run together share the work of a step, so what a token costs depends on how many
    there are; one line through all would be far from each. Raises FitError when the concurrency
    that is served cannot be fitted; others that cannot are left out.
    """
    found = screened(measured.windows, measured.idle, plausible_watts(meter))
    by_concurrency = {
        each: [sample for sample in found.samples if sample.cell.concurrency == each]
        for each in sorted(grid.concurrency)
    }
    try:
        served = _fields(fit(by_concurrency.pop(grid.served)))
    except FitError as error:
        why = ", ".join(f"{count} of {reason!r}" for reason, count in found.dropped.items())
        raise FitError(
            f"at concurrency {grid.served}: {error}; of {len(measured.windows)} windows were "
            f"dropped: {why or 'none'} (idle power {measured.idle.watts:.4g} W, from window to "
            f"window ±{measured.idle.noise_watts:.2g} W)"
        ) from error
    return EnergyProfile(
        concurrency=grid.served,
        **served,
        model=model,
        endpoint=url,
        meter=meter.source,
        sensors=tuple(meter.sensors),
        measured_at=datetime.now(UTC).replace(microsecond=0),
        **_rounded(
            {
                "idle_watts": measured.idle.watts,
                "idle_noise_watts": measured.idle.noise_watts,
            }
        ),
        dropped=_dropped(found.dropped, measured.idle),
        grid={
            "prompt_tokens": grid.prompt_tokens,
            "completion_tokens": grid.completion_tokens,
            "concurrency": grid.concurrency,
            "repeats": grid.repeats,
            "seconds": grid.seconds,
        },
        other_concurrencies=_others(by_concurrency),
    )


def _dropped(windows: dict[str, int], idle: Idle) -> dict[str, int]:
    return {**windows, "absurd while idle": idle.dropped} if idle.dropped else windows


def _others(by_concurrency: dict[int, list[Sample]]) -> tuple[AtConcurrency, ...]:
    found = []
    for concurrency, samples in by_concurrency.items():
        try:
            found.append(AtConcurrency(concurrency=concurrency, **_fields(fit(samples))))
        except FitError:
            continue
    return tuple(found)


def _fields(found: Fit) -> dict[str, Any]:
    """A fit in the fields of a profile."""
    return {
        **_rounded(asdict(found.coefficients)),
        "standard_errors": _rounded(asdict(found.standard_errors)),
        **_rounded({"relative_error": found.relative_error}),
        "windows": found.windows,
    }


def _rounded(found: dict[str, float]) -> dict[str, float]:
    """To six significant digits, which is more than any of them is known to."""
    return {name: float(f"{value:.6g}") for name, value in found.items()}
