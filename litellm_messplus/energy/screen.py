"""Which windows can be used: the others are dropped, and counted by why."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from litellm_messplus.energy.fit import Sample
from litellm_messplus.energy.measure import Idle, MeasuredWindow
from litellm_messplus.energy.meter import Reading

NOISE_DEVIATIONS = 3.0
"""Standard deviations of idle power within which a window cannot be told from an idle one."""


class Fault(StrEnum):
    """Why a reading is not used."""

    FAILED = "a request failed"
    NO_TIME = "no time passed"
    ABSURD = "more power than plausible"
    BELOW_IDLE = "less energy than idle"
    IDLE = "not to be told from idle"


@dataclass(frozen=True, slots=True)
class Screened:
    """Samples that can be used, idle energy subtracted, and how many were dropped by why."""

    samples: tuple[Sample, ...]
    dropped: dict[str, int]


def screened(windows: Iterable[MeasuredWindow], idle: Idle, plausible_watts: float) -> Screened:
    """Keep the windows that say what a token costs."""
    samples, dropped = [], Counter[str]()
    for window in windows:
        reason = (
            Fault.FAILED if window.usage is None else fault(window.reading, idle, plausible_watts)
        )
        if reason is not None or window.usage is None:
            dropped[str(reason)] += 1
            continue
        samples.append(
            Sample(
                window.cell,
                window.usage.prompt_tokens,
                window.usage.completion_tokens,
                window.usage.requests,
                above_idle(window.reading, idle),
            )
        )
    return Screened(tuple(samples), dict(sorted(dropped.items())))


def above_idle(reading: Reading, idle: Idle) -> float:
    """Joules of a reading, those of idle power subtracted."""
    return reading.joules - idle.watts * reading.seconds


def fault(reading: Reading, idle: Idle, plausible_watts: float) -> Fault | None:
    """Why a reading cannot be used; None if it can."""
    if not (reading.seconds > 0 and math.isfinite(reading.seconds)):
        return Fault.NO_TIME
    if not reading.joules <= plausible_watts * reading.seconds:  # nor is NaN
        return Fault.ABSURD
    joules, noise = above_idle(reading, idle), NOISE_DEVIATIONS * idle.noise_watts * reading.seconds
    if joules < -noise or reading.joules < 0:
        return Fault.BELOW_IDLE
    return None if joules > noise else Fault.IDLE
