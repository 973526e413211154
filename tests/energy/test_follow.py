"""In service, calls get the joules of the windows that they ran in, all of them and no others;
failures cost measurements alone."""

import asyncio
import math
from collections import Counter
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.energy.follow import (
    BOUND,
    Call,
    Correction,
    EnergyFollower,
    Ledger,
    MeasuredCall,
    Span,
)
from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.runtime.counters import Counters
from tests.support.patience import PATIENT

seconds = st.floats(min_value=0.0, max_value=30.0)


@given(seconds, seconds, st.lists(seconds, max_size=5))
def test_windows_in_a_row_share_a_call_out_completely(
    started: float, duration: float, cuts: list[float]
) -> None:
    call = Call("a", "one", started, started + duration, 5.0)
    edges = sorted({0.0, 61.0, *cuts})

    shares = [Span(start, end).share_of(call) for start, end in pairwise(edges)]

    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0


class Books:
    """A ledger with windows of ten seconds, settled five seconds after their end."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.ledger = Ledger(5.0, self.counters)
        self.measured: dict[str, float] = {}
        self.now = 0.0

    def call(self, name: str, start: float, end: float, joules: float, on: str = "one") -> None:
        self.ledger.ended(Call(name, on, start, end, joules))

    def window(self, joules: float | None) -> None:
        self.now += 10.0
        self.ledger.window(Span(self.now - 10.0, self.now), joules)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.counters.as_dict())

    def settle(self) -> None:
        for call in self.ledger.settle(self.now + 5.0):
            assert call.call_id not in self.measured
            self.measured[call.call_id] = call.joules


NOT_MEASURED = {"energy_calls_not_measured": 1}
OVER = [("over", 5.0, 15.0, 100.0), ("within", 1.0, 2.0, 100.0)]
DROPPED = {**NOT_MEASURED, "energy_readings_dropped": 1}


@pytest.mark.parametrize(
    ("ended", "windows", "measured", "counted"),
    [
        ([("a", 1.0, 9.0, 100.0), ("b", 2.0, 4.0, 300.0)], [500.0], {"a": 125.0, "b": 375.0}, {}),
        ([("long", 5.0, 25.0, 100.0)], [25.0, 60.0, 25.0], {"long": 110.0}, {}),
        (OVER, [150.0, None], {"within": 100.0}, NOT_MEASURED),
        (OVER, [150.0, 1e9], {"within": 100.0}, DROPPED),
        (OVER, [150.0, -5.0], {"within": 100.0}, DROPPED),
        ([("before", -5.0, 5.0, 100.0)], [50.0], {}, NOT_MEASURED),
        ([], [500.0], {}, {"energy_windows_without_calls": 1}),
        *(
            (
                [("absurd", 1.0, 2.0, each), ("a", 1.0, 2.0, 100.0)],
                [100.0],
                {"a": 100.0},
                NOT_MEASURED,
            )
            for each in (-1.0, math.nan, math.inf)
        ),
    ],
    ids=[
        *("shared by the estimates", "over several windows", "a window that was not measured"),
        *("an absurd one", "one below idle", "a call from before the first", "no calls"),
        *("an estimate below zero", "one that is no number", "one without end"),
    ],
)
def test_calls_have_the_joules_of_their_windows(
    ended: list[tuple[str, float, float, float]],
    windows: list[float | None],
    measured: dict[str, float],
    counted: dict[str, int],
) -> None:
    books = Books()
    for call in ended:
        books.call(*call)
    for joules in windows:
        books.window(joules)
        books.settle()
    assert books.measured == pytest.approx(measured)
    assert books.counts == counted


def test_a_call_that_ended_after_its_first_window_still_has_its_part_of_it() -> None:
    books = Books()
    books.call("short", 0.0, 10.0 - 1e-9, 100.0)
    books.window(200.0)
    books.ledger.settle(10.0)
    books.call("long", 0.0, 12.0, 120.0)
    books.window(20.0)
    books.settle()

    assert books.measured == pytest.approx({"short": 100.0, "long": 120.0})


calls = st.lists(
    st.tuples(seconds, seconds, st.floats(min_value=1.0, max_value=20.0)), min_size=1, max_size=30
)


@given(calls, st.floats(min_value=0.2, max_value=5.0))
def test_measured_calls_sum_to_the_measured_windows(
    found: list[tuple[float, float, float]], times: float
) -> None:
    """Within 1 %, with every call within windows that read ``times`` what was estimated."""
    books = Books()
    drawn = Counter[int]()
    for number, (start, duration, joules) in enumerate(found):
        call = Call(str(number), "one", start, start + duration, joules)
        books.ledger.ended(call)
        for index in range(7):
            share = Span(10.0 * index, 10.0 * index + 10.0).share_of(call)
            drawn[index] += times * joules * share  # type: ignore[assignment]
    for index in range(7):
        books.window(drawn[index] or None)
    books.settle()

    assert len(books.measured) == len(found)
    assert sum(books.measured.values()) == pytest.approx(sum(drawn.values()), rel=0.01)


@given(st.floats(min_value=0.2, max_value=5.0))
def test_the_correction_follows_the_measurement_slowly(times: float) -> None:
    correction = Correction()
    correction.follow(100.0 * times, 100.0)

    assert abs(math.log(correction.factor)) <= 0.1 * abs(math.log(times))
    for _ in range(200):
        correction.follow(100.0 * times, 100.0 * correction.factor)
    assert correction.factor == pytest.approx(times, rel=0.01)
    for _ in range(100):
        correction.follow(BOUND if times > 1.0 else 1.0 / BOUND, 1.0)
        assert abs(math.log(correction.factor)) <= math.log(BOUND) + 1e-9


@pytest.mark.parametrize("measured", [-1.0, 0.0, 9.0, 1001.0, math.nan, math.inf])
def test_an_absurd_window_does_not_move_the_correction(measured: float) -> None:
    books = Books()
    books.call("a", 1.0, 2.0, 100.0)
    books.window(measured)
    books.settle()

    assert books.ledger.correction("one") == 1.0
    assert books.counts == DROPPED


def test_two_deployments_on_one_device_are_distinguished_by_their_mix() -> None:
    """One takes twice what its profile says, the other what it says."""
    books = Books()
    for step in range(600):
        first, second = (90.0, 10.0) if step % 2 else (10.0, 90.0)
        books.call(f"first {step}", books.now + 1, books.now + 2, first, on="first")
        books.call(f"second {step}", books.now + 3, books.now + 4, second, on="second")
        books.window(2.0 * first + second)
        books.settle()

    assert books.ledger.correction("first") == pytest.approx(2.0, rel=0.05)
    assert books.ledger.correction("second") == pytest.approx(1.0, rel=0.05)


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


async def test_the_profile_follows_what_is_measured() -> None:
    service = Service(*[150.0] * 20)
    for window in range(20):
        start = 10.0 * window
        service.follower.ended(Call(str(window), "one", start + 1, start + 2, 100.0))

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
        service.follower.ended(Call(name, "one", start, start + 1, 100.0))

    await service.run()

    assert service.measured == pytest.approx({"before": 100.0, "after": 100.0})
    assert service.count(counted) >= 1
    assert service.count("energy_calls_not_measured") == 1
    assert service.follower.correction("one") == 1.0


async def test_a_call_that_no_window_takes_costs_the_others_nothing() -> None:
    service = Service(300.0)
    for name in ("first", "refused", "last"):
        service.follower.ended(Call(name, "one", 1.0, 2.0, 100.0))

    await service.run()

    assert service.measured == pytest.approx({"first": 100.0, "last": 100.0})
    assert service.count("energy_report_failures") == 1
