"""In service, calls get the joules of the windows they ran in; failures cost measurements alone."""

import asyncio
from itertools import count

import pytest

from litellm_messplus.energy.follow import EnergyFollower, MeasuredCall
from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.runtime import Counters
from tests.support.patience import PATIENT

IDLE = Idle(watts=60.0, noise_watts=0.1)


class Service:
    """A follower on a scripted meter: window number n lasts from 10 n to 10 n + 10 on its clock.

    ``steps``: joules above idle of each window, or what its reading raises.
    """

    source = "scripted"
    sensors = ("scripted gpu 0",)

    def __init__(self, *steps: float | Exception) -> None:
        self._steps = list(steps)
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.counters = Counters()
        self.measured: dict[str, float] = {}
        self.follower = EnergyFollower(
            self,
            IDLE,
            measured=self.take,
            counters=self.counters,
            seconds=0.001,
            lag_seconds=0.0,
            clock=count(0.0, 10.0).__next__,
        )

    def take(self, call: MeasuredCall) -> None:
        if call.call_id == "refused":
            raise RuntimeError("no row for it")
        self.measured[call.call_id] = call.joules

    def begin(self) -> "Service":
        return self

    def end(self) -> Reading:
        if not self._steps:
            self._loop.call_soon_threadsafe(self._over.set)
            return Reading(10.0, 600.0)
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return Reading(10.0, 600.0 + step)

    async def run(self) -> None:
        """Until every window of the script is settled."""
        task = asyncio.create_task(self.follower.run())
        await asyncio.wait_for(self._over.wait(), PATIENT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def count(self, name: str) -> int:
        return self.counters.as_dict().get(name, 0)


async def test_concurrent_calls_share_what_was_measured_above_idle() -> None:
    service = Service(400.0)
    service.follower.ended("a", "one", 1.0, 9.0, 100.0)
    service.follower.ended("b", "two", 2.0, 3.0, 300.0)

    await service.run()

    assert service.measured == pytest.approx({"a": 100.0, "b": 300.0})


async def test_the_profile_follows_what_is_measured() -> None:
    service = Service(*[150.0] * 20)
    for window in range(20):
        start = 10.0 * window
        service.follower.ended(str(window), "one", start + 1, start + 2, 100.0)

    await service.run()

    assert len(service.measured) == 20
    assert 1.2 < service.follower.correction("one") < 1.5
    assert service.follower.correction("another") == 1.0


@pytest.mark.parametrize(
    ("step", "counted"),
    [
        (NotMeasuredError("no sensor"), "energy_meter_failures"),
        (RuntimeError("others' code"), "energy_meter_failures"),
        (-300.0, "energy_readings_dropped"),
        (1e9, "energy_readings_dropped"),
        (5000.0, "energy_readings_dropped"),
        (0.5, "energy_windows_quiet"),
    ],
)
async def test_a_useless_window_is_counted_and_the_next_are_followed(
    step: float | Exception, counted: str
) -> None:
    service = Service(100.0, step, 100.0)
    for name, start in (("before", 1.0), ("in it", 11.0), ("after", 21.0)):
        service.follower.ended(name, "one", start, start + 1, 100.0)

    await service.run()

    assert service.measured == pytest.approx({"before": 100.0, "after": 100.0})
    assert service.count(counted) >= 1
    assert service.count("energy_calls_not_measured") == 1
    assert service.follower.correction("one") == 1.0


async def test_a_call_that_nobody_takes_costs_the_others_nothing() -> None:
    service = Service(300.0)
    for name in ("first", "refused", "last"):
        service.follower.ended(name, "one", 1.0, 2.0, 100.0)

    await service.run()

    assert service.measured == pytest.approx({"first": 100.0, "last": 100.0})
    assert service.count("energy_report_failures") == 1
