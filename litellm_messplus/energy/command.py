"""`messplus profile`: measure, fit, write, and show."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from litellm_messplus.energy.measure import Endpoint, Grid, Idle, Measured, measure, steps
from litellm_messplus.energy.meter import FitError, Meter, plausible_watts
from litellm_messplus.energy.profile import (
    MAX_RELATIVE_ERROR,
    AtConcurrency,
    Costs,
    EnergyProfile,
    Fitted,
    GridOfProfile,
    Sample,
    fit,
    screened,
)
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.terminal import progress

# From the measured windows to the profile.


def summarise(
    measured: Measured, grid: Grid, meter: Meter, *, model: str, url: str
) -> EnergyProfile:
    """Drop unusable windows, and fit every concurrency by itself.

    Concurrent requests share the work of a step, so the cost of a token depends on their number;
    one line through all would be far from each. Raises FitError if the served concurrency cannot be
    fitted; others that cannot are left out.
    """
    found = screened(measured.windows, measured.idle, plausible_watts(meter))
    by_concurrency = {
        each: [sample for sample in found.samples if sample.cell.concurrency == each]
        for each in sorted(grid.concurrency)
    }
    try:
        served = _rounded(fit(by_concurrency.pop(grid.served)))
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
        idle_watts=_six_digits(measured.idle.watts),
        idle_noise_watts=_six_digits(measured.idle.noise_watts),
        dropped=_dropped(found.dropped, measured.idle),
        grid={name: getattr(grid, name) for name in GridOfProfile.model_fields},
        other_concurrencies=_others(by_concurrency),
    )


def _dropped(windows: dict[str, int], idle: Idle) -> dict[str, int]:
    return {**windows, "absurd while idle": idle.dropped} if idle.dropped else windows


def _others(by_concurrency: dict[int, list[Sample]]) -> tuple[AtConcurrency, ...]:
    found = []
    for concurrency, samples in by_concurrency.items():
        try:
            found.append(AtConcurrency(concurrency=concurrency, **_rounded(fit(samples))))
        except FitError:
            continue
    return tuple(found)


def _rounded(found: Costs) -> dict[str, Any]:
    """Return the fields of a fit, rounded."""
    return {
        name: _rounded(value)
        if isinstance(value, Costs)
        else _six_digits(value)
        if isinstance(value, float)
        else value
        for name, value in found
    }


def _six_digits(value: float) -> float:
    """Round to six significant digits, which exceeds the precision of any of them."""
    return float(f"{value:.6g}")


# A profile as a table for the terminal.

ROWS = {
    "per prompt token": "joules_per_prompt_token",
    "per completion token": "joules_per_completion_token",
    "per request": "joules_per_request",
}


def table(profile: EnergyProfile) -> Table:
    """Lay out the costs at every concurrency; the profile's own first, with a star."""
    shown = Table(
        title=f"{profile.model}\n{profile.meter}: {', '.join(profile.sensors)}",
        caption="\n".join(_caption(profile)),
        caption_justify="left",
        box=SIMPLE,
        pad_edge=False,
    )
    fits = (profile, *profile.other_concurrencies)
    shown.add_column("joules, above idle")
    for each in fits:
        star = " *" if each is profile else ""
        shown.add_column(f"{each.concurrency} at a time{star}", justify="right")
    for words, field in ROWS.items():
        shown.add_row(words, *(_value(each, field) for each in fits))
    shown.add_row("relative error", *(f"{each.relative_error:.1%}" for each in fits))
    shown.add_row("windows", *(str(each.windows) for each in fits))
    return shown


def _value(fitted: Fitted, field: str) -> str:
    value, error = getattr(fitted, field), getattr(fitted.standard_errors, field)
    return f"{value:.4g} ± {error:.2g}"


def _caption(profile: EnergyProfile) -> Iterator[str]:
    yield "* what the profile states for calls in service; ± one standard error"
    yield (
        f"idle: {profile.idle_watts:.4g} W ± {profile.idle_noise_watts:.2g} W from window to "
        "window, subtracted"
    )
    if profile.dropped:
        dropped = ", ".join(f"{why}: {count}" for why, count in profile.dropped.items())
        yield f"windows dropped: {dropped}"
    if profile.relative_error > MAX_RELATIVE_ERROR:
        yield (
            f"the relative error is above {MAX_RELATIVE_ERROR:.0%}: the proxy refuses this profile"
        )


def run(
    meter: Meter, grid: Grid, *, url: str, model: str, key: str | None, out: Path, as_json: bool
) -> int:
    """Profile the model at the endpoint, write ``out``, and print a table or JSON.

    Returns the exit status: 2 for a profile whose error is so large that the proxy refuses it.
    Raises ConfigurationError for a file that cannot be written, before anything is measured if its
    folder is missing; NotMeasuredError, EndpointError and FitError.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigurationError("--out", str(out), "a file in a folder that exists")
    with progress("windows") as bar:
        task = bar.add_task(model, total=steps(grid))
        measured = asyncio.run(
            _measure(meter, grid, url, model, key, advance=lambda: bar.advance(task))
        )
    profile = summarise(measured, grid, meter, model=model, url=url)
    if as_json:
        print(json.dumps(profile.model_dump(mode="json")))
    else:
        Console().print(table(profile))
    try:
        profile.write(out)
    except OSError as error:
        raise ConfigurationError(
            "--out", str(out), f"a file that can be written ({error})"
        ) from error
    return 2 if profile.relative_error > MAX_RELATIVE_ERROR else 0


async def _measure(
    meter: Meter, grid: Grid, url: str, model: str, key: str | None, *, advance: Callable[[], None]
) -> Measured:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    every = httpx.Limits(max_connections=None)  # the grid sets the concurrency
    async with httpx.AsyncClient(headers=headers, limits=every) as client:
        return await measure(meter, Endpoint(client, url, model), grid, advance)
