"""Energy in service: windows of a meter, one after the other, divided among the calls in them.

The proxy reports the end of each call with its profile's estimate, and gets the measured joules:

    follower = EnergyFollower(meter, idle, measured=write, counters=counters)
    task = asyncio.create_task(follower.run())
    follower.ended(Call(call_id, deployment_id, started, ended, estimated_joules))

One follower serves one meter, and all deployments that run on its sensors."""

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import Meter, Reading, plausible_watts
from litellm_messplus.energy.profile import Fault, above_idle, fault
from litellm_messplus.runtime.counters import Counters

Found = TypeVar("Found")

# The joules of one window, divided among the calls that ran in it. Pure.


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended: when it ran, and the estimated joules of its tokens.

    Times are in seconds, of the same clock as the windows.
    """

    call_id: str
    deployment_id: str
    started: float
    ended: float
    estimated_joules: float


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time, from ``start`` up to ``end``, in seconds."""

    start: float
    end: float

    def share_of(self, call: Call) -> float:
        """Return the share of the call's time that falls in the span, from 0 to 1."""
        duration = call.ended - call.started
        if duration <= 0:  # an instant, which lies in a single window
            return float(self.start <= call.ended < self.end)
        return max(0.0, min(self.end, call.ended) - max(self.start, call.started)) / duration


# The error of a deployment's profile in service, followed slowly. Pure.

RATE = 0.05
"""Share of the way, on a logarithmic scale, by which a single window moves the factor."""
BOUND = 10.0
"""A window of more than that many times the expectation, or less than its inverse, is absurd; the
factor stays within the same bounds."""


def is_absurd(measured: float, expected: float) -> bool:
    """Tell whether measured joules, above idle, are too far from the expected ones to be used."""
    return not (expected > 0 and expected / BOUND <= measured <= expected * BOUND)


class Correction:
    """The factor between a profile's estimates and the measured joules; 1 before any window."""

    def __init__(self) -> None:
        self._log = 0.0

    @property
    def factor(self) -> float:
        """The factor by which an estimate of the profile is to be multiplied."""
        return math.exp(self._log)

    def follow(self, measured: float, expected: float, share: float = 1.0) -> None:
        """Follow a window of ``measured`` joules against ``expected`` ones, estimated with the
        factor.

        ``share`` is this deployment's part of the expectation, from 0 to 1, and scales the
        step. The window must not be absurd.
        """
        moved = self._log + RATE * share * math.log(measured / expected)
        self._log = min(math.log(BOUND), max(-math.log(BOUND), moved))


# Windows and the calls that ran in them, until the joules can be divided. Uses no clock.
#
# A window is settled some time after its end, when the calls that were still running then have
# ended too: its joules go to the calls that overlap it. A call's joules are the sum over its
# windows.

COVERED = 0.99
"""Share of a call's time that must have been measured for its joules to count as measured."""
MAX_CALLS = 100_000
"""Most calls held, in case windows fail to come."""


@dataclass(slots=True)
class _Open:
    """A call that waits for its windows."""

    call: Call
    joules: float = 0.0
    covered: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """The joules of one call, above idle."""

    call_id: str
    deployment_id: str
    joules: float


class Ledger:
    """The open windows and calls. A window is settled ``lag_seconds`` after its end, and dropped
    ones are counted."""

    def __init__(self, lag_seconds: float, counters: Counters) -> None:
        self._lag, self._counters = lag_seconds, counters
        self._windows: deque[tuple[Span, float | None]] = deque()
        self._calls: list[_Open] = []
        self._corrections: dict[str, Correction] = {}

    def ended(self, call: Call) -> None:
        """Record that a call has ended; its estimate is the profile's own, uncorrected.

        A call whose estimate is negative or not finite is only counted.
        """
        if not 0 <= call.estimated_joules < math.inf or len(self._calls) >= MAX_CALLS:
            self._counters.add("energy_calls_not_measured")
            return
        self._calls.append(_Open(call))

    def window(self, span: Span, joules: float | None) -> None:
        """Record that a window has ended, with its ``joules`` above idle, None if not measured;
        windows come in order."""
        self._windows.append((span, joules))

    def correction(self, deployment_id: str) -> float:
        """Return the correction factor for the profile of that deployment."""
        found = self._corrections.get(deployment_id)
        return 1.0 if found is None else found.factor

    def settle(self, now: float) -> list[MeasuredCall]:
        """Settle the windows that are due, and return the calls whose windows are all measured."""
        found: list[MeasuredCall] = []
        while self._windows and self._windows[0][0].end + self._lag <= now:
            span, joules = self._windows.popleft()
            if joules is not None:
                self._divide(span, joules)
            found += self._finished(span.end)
        return found

    def _divide(self, span: Span, joules: float) -> None:
        """Divide the joules of a window among the calls in it, in proportion to their estimates."""
        present: list[tuple[_Open, float, float]] = []
        expected: defaultdict[str, float] = defaultdict(float)
        for each in self._calls:
            share, deployment_id = span.share_of(each.call), each.call.deployment_id
            if share > 0:
                weight = each.call.estimated_joules * share * self.correction(deployment_id)
                present.append((each, share, weight))
                expected[deployment_id] += weight
        total = sum(weight for _, _, weight in present)
        if not total > 0:
            self._counters.add("energy_windows_without_calls")
        elif not self._follow(joules, expected):
            self._counters.add("energy_readings_dropped")
        else:
            for each, share, weight in present:
                each.joules += joules * (weight / total)
                each.covered += share

    def _follow(self, joules: float, expected: Mapping[str, float]) -> bool:
        """Move the correction of every deployment in the window; False for an absurd window."""
        total = sum(expected.values())
        if is_absurd(joules, total):
            return False
        for deployment_id, part in expected.items():
            correction = self._corrections.setdefault(deployment_id, Correction())
            correction.follow(joules, total, share=part / total)
        return True

    def _finished(self, until: float) -> Iterator[MeasuredCall]:
        """Yield the calls that ended before ``until``; no later window can add to them."""
        waiting = []
        for each in self._calls:
            if each.call.ended >= until:
                waiting.append(each)
            elif each.covered >= COVERED:
                yield MeasuredCall(each.call.call_id, each.call.deployment_id, each.joules)
            else:
                self._counters.add("energy_calls_not_measured")
        self._calls = waiting


WINDOW_SECONDS = 10.0
LAG_SECONDS = 60.0
"""A call that runs longer, or ends that long after its first window, keeps its estimate."""


class EnergyFollower:
    """The follower of one meter. Its failures are counted, and cost only measurements.

    ``idle`` is the power of the meter's sensors without requests, as stated by a profile of the
    same sensors: `Idle(profile.idle_watts, profile.idle_noise_watts)`.
    ``measured(call)`` is called once for every call that was measured throughout, above idle, up to
    LAG_SECONDS and a window after its end. ``clock`` must be that of the times given to `ended`;
    by default, seconds since 1970.
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

    def ended(self, call: Call) -> None:
        """Record that a call has ended; its estimate is the profile's own, not multiplied by
        `correction`."""
        self._ledger.ended(call)

    def correction(self, deployment_id: str) -> float:
        """Return the correction factor for the profile of a deployment; 1 at first."""
        return self._ledger.correction(deployment_id)

    async def run(self) -> None:
        """Read the meter until cancelled."""
        start, window = self._clock(), await self._tried(self._meter.begin)
        while True:
            await asyncio.sleep(self._seconds)
            end = self._clock()
            found = None if window is None else await self._tried(window.end)
            window = await self._tried(self._meter.begin)
            self._ledger.window(Span(start, end), self._usable(found))
            for call in self._ledger.settle(end):
                self._tell(call)
            start = end

    async def _tried(self, act: Callable[[], Found]) -> Found | None:
        """Begin or end a window in a thread, since a meter may wait for the network. None if it
        fails."""
        try:
            return await asyncio.to_thread(act)
        except Exception as error:  # a NotMeasuredError, or anything from a third-party meter
            self._counters.failure("energy_meter_failures", f"energy is not measured: {error}")
            return None

    def _usable(self, found: Reading | None) -> float | None:
        """Return the joules above idle; None, and counted, if the reading is unusable."""
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
        with self._counters.tolerated("energy_report_failures", "a call's energy was not recorded"):
            self._measured(call)
