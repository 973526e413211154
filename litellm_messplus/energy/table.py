"""A profile as a table for the terminal."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from litellm_messplus.energy.profile import MAX_RELATIVE_ERROR, EnergyProfile, Fitted

ROWS = {
    "per prompt token": "joules_per_prompt_token",
    "per completion token": "joules_per_completion_token",
    "per request": "joules_per_request",
}


def table(profile: EnergyProfile) -> Table:
    """The costs at every concurrency; the profile's own first, with a star."""
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
