"""The procedure of a profile: warm up, measure idle, then every window of the grid."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from litellm_messplus.energy.errors import EndpointError, NotMeasuredError
from litellm_messplus.energy.grid import Cell, Grid
from litellm_messplus.energy.load import Endpoint, Usage
from litellm_messplus.energy.meter import Meter, Reading, plausible_watts


@dataclass(frozen=True, slots=True)
class Idle:
    """Power while no request runs, and its standard deviation from one window to the next.

    ``dropped``: how many windows were negative or absurd, and are not in it.
    """

    watts: float
    noise_watts: float
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """What was sent, what the endpoint says it took, and what was read; None for what failed."""

    cell: Cell
    usage: Usage | None
    reading: Reading


@dataclass(frozen=True, slots=True)
class Measured:
    """All windows of a grid, whether they can be used or not."""

    idle: Idle
    windows: tuple[MeasuredWindow, ...]


def steps(grid: Grid) -> int:
    """How often `measure` calls its ``advance``."""
    return len(grid.warm_up()) + grid.idle_windows + len(grid.cells())


async def measure(
    meter: Meter, endpoint: Endpoint, grid: Grid, advance: Callable[[], None] = lambda: None
) -> Measured:
    """Measure the whole grid; ``advance`` is called after every step.

    Idle power is that of a loaded, warm model without requests, so it is measured after the
    warm-up. A window in which a request fails stays without usage. Raises NotMeasuredError, and
    EndpointError when the endpoint fails at the warm-up already.
    """
    await _one_idle_window(meter, grid.seconds)  # a meter that measures nothing stops here
    await endpoint.calibrate()
    for cell in grid.warm_up():
        await endpoint.load(cell, grid.seconds)
        advance()
    idle = await _idle(meter, grid, advance)
    windows = []
    for cell in grid.cells():
        windows.append(await _one_window(meter, endpoint, cell, grid.seconds))
        advance()
    return Measured(idle, tuple(windows))


async def _idle(meter: Meter, grid: Grid, advance: Callable[[], None]) -> Idle:
    await asyncio.sleep(grid.seconds)  # the clocks of a device fall some time after its work
    readings = []
    for _ in range(grid.idle_windows):
        readings.append(await _one_idle_window(meter, grid.seconds))
        advance()
    return idle_of(readings, plausible_watts(meter))


def idle_of(readings: Sequence[Reading], plausible_watts: float) -> Idle:
    """Idle power from windows without requests.

    Raises NotMeasuredError where fewer than two can be used.
    """
    watts = [
        each.joules / each.seconds
        for each in readings
        if each.seconds > 0 and 0 <= each.joules <= plausible_watts * each.seconds
    ]
    if len(watts) < 2:
        raise NotMeasuredError(
            f"of {len(readings)} windows without requests {len(watts)} can be used: the others "
            f"were negative or above {plausible_watts:g} W, so the meter is not to be trusted"
        )
    return Idle(fmean(watts), stdev(watts), len(readings) - len(watts))


async def _one_idle_window(meter: Meter, seconds: float) -> Reading:
    window = meter.begin()
    await asyncio.sleep(seconds)
    return window.end()


async def _one_window(
    meter: Meter, endpoint: Endpoint, cell: Cell, seconds: float
) -> MeasuredWindow:
    window = meter.begin()
    try:
        usage = await endpoint.load(cell, seconds)
    except EndpointError:
        return MeasuredWindow(cell, None, window.end())
    return MeasuredWindow(cell, usage, window.end())
