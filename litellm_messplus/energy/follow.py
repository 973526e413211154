"""Energy in service: windows of a meter, one after the other, divided among the calls in them.

The proxy says when a call has ended and what its profile estimates, and is told what it took:

    follower = EnergyFollower(meter, idle, measured=write, counters=counters)
    task = asyncio.create_task(follower.run())
    follower.ended(call_id, deployment_id, started_seconds, ended_seconds, estimated_joules)

One follower has one meter, and all deployments that run on its sensors.
"""

import asyncio
import time
from collections.abc import Callable

from litellm_messplus.counters import Counters
from litellm_messplus.energy.apportion import Call, Span
from litellm_messplus.energy.ledger import Ledger, MeasuredCall
from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import Meter, Reading, Window, plausible_watts
from litellm_messplus.energy.screen import Fault, above_idle, fault

WINDOW_SECONDS = 10.0
LAG_SECONDS = 60.0
"""A call that runs longer, or ends that much after its first window, keeps its estimate."""


class EnergyFollower:
    """Follows one meter. Whatever fails in here is counted, and costs measurements alone.

    ``idle`` is the power of the meter's sensors without requests, as a profile of the same sensors
    states it: `Idle(profile.idle_watts, profile.idle_noise_watts)`.
    ``measured(call)`` is called once for every call that was measured throughout, above idle, up to
    LAG_SECONDS and a window after its end. ``clock`` must be that of the times given
    to `ended`; by default, seconds since 1970.
    """

    def __init__(
        self,
        meter: Meter,
        idle: Idle,
        *,
        measured: Callable[[MeasuredCall], None],
        counters: Counters,
        seconds: float = WINDOW_SECONDS,
        lag_seconds: float = LAG_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._meter, self._idle, self._measured = meter, idle, measured
        self._counters, self._seconds, self._clock = counters, seconds, clock
        self._ledger = Ledger(lag_seconds, counters)

    def ended(
        self,
        call_id: str,
        deployment_id: str,
        started_seconds: float,
        ended_seconds: float,
        estimated_joules: float,
    ) -> None:
        """A call has ended. ``estimated_joules`` are the profile's own, not multiplied by
        `correction`."""
        call = Call(call_id, deployment_id, started_seconds, ended_seconds, estimated_joules)
        self._ledger.ended(call)

    def correction(self, deployment_id: str) -> float:
        """By which the profile's estimates for a deployment are to be multiplied; 1 at first."""
        return self._ledger.correction(deployment_id)

    async def run(self) -> None:
        """Read the meter until cancelled."""
        start, window = self._clock(), await self._begin()
        while True:
            await asyncio.sleep(self._seconds)
            end, found = self._clock(), await self._end(window)
            window = await self._begin()
            self._ledger.window(Span(start, end), self._usable(found))
            for call in self._ledger.settle(end):
                self._tell(call)
            start = end

    async def _begin(self) -> Window | None:
        """In a thread, since a meter may wait for the network. None where it fails."""
        try:
            return await asyncio.to_thread(self._meter.begin)
        except Exception as error:  # a NotMeasuredError, or whatever a meter of others raises
            self._failed(error)
            return None

    async def _end(self, window: Window | None) -> Reading | None:
        try:
            return None if window is None else await asyncio.to_thread(window.end)
        except Exception as error:
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        self._counters.failure("energy_meter_failures", f"energy is not measured: {error}")

    def _usable(self, found: Reading | None) -> float | None:
        """Joules above idle; None, and counted, where a reading is of no use."""
        if found is None:
            return None
        why = fault(found, self._idle, plausible_watts(self._meter))
        if why is None:
            return above_idle(found, self._idle)
        if why is Fault.IDLE:
            self._counters.add("energy_windows_quiet")
        else:
            self._counters.add("energy_readings_dropped")
        return None

    def _tell(self, call: MeasuredCall) -> None:
        try:
            self._measured(call)
        except Exception:
            self._counters.failure("energy_report_failures", "a call's energy was not taken")
