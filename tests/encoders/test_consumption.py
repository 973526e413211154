"""What encoding draws above idle: measured once, believed only where it can be."""

import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import active_children, get_context
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.conformance.encoders import FakeEncoder
from litellm_messplus.encoders import process as consumption
from litellm_messplus.encoders import worker
from litellm_messplus.encoders.process import Consumption, measured
from litellm_messplus.energy.meter import NotMeasuredError, Reading, reading
from litellm_messplus.prediction.encoder import FeatureRows
from tests.support.patience import PATIENT

IDLE_WATTS = 70.0
WATTS_OF = {1: 30.0, 16: 180.0}
ENCODE_SECONDS = 0.05


class Clock:
    """The module `time`, as far as measuring needs it: time passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Gpu(FakeEncoder):
    """An encoder, and the meter of the GPU that it computes on."""

    source = "simulated"
    sensors = ("gpu 1",)
    alter: Callable[[Reading], Reading] = staticmethod(lambda found: found)

    def __init__(self) -> None:
        super().__init__(is_fast=False)
        self.texts: list[str] = []
        self.clock = Clock()
        self._worked = 0.0

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        self.clock.sleep(ENCODE_SECONDS)
        self.texts += texts
        self._worked += WATTS_OF[len(texts)] * ENCODE_SECONDS
        return super().encode(texts)

    def joules(self) -> float:
        return IDLE_WATTS * self.clock.now + self._worked

    def begin(self) -> Any:
        began, before = self.clock.now, self.joules()

        def end() -> Reading:
            counted = self.joules() - before
            return self.alter(reading(self.clock.now - began, {"gpu 1": counted}))

        return SimpleNamespace(end=end)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    found = Gpu()
    opened = {(1,): found}
    monkeypatch.setattr(consumption, "time", found.clock)
    monkeypatch.setattr(
        consumption, "open_meter", lambda *, gpus, with_cpu: with_cpu or opened[tuple(gpus)]
    )
    return found


def test_the_watts_of_a_gpu_are_those_above_idle_at_the_size_of_the_batch(gpu: Gpu) -> None:
    found = measured(gpu, [1])

    assert found.watts == pytest.approx((30.0, 180.0))
    assert found.joules(1, 0.01) == pytest.approx(0.3)
    assert found.joules(6, 0.01) == pytest.approx(0.8)
    assert found.joules(64, 0.01) == pytest.approx(1.8)
    # An encoder may remember a text: none is encoded twice for it.
    assert len(gpu.texts) == len(set(gpu.texts)) > 17
    assert str(found).endswith("above idle (simulated: gpu 1)")


def gone(found: Reading) -> Reading:
    raise OSError("the driver is gone")


USELESS: dict[str, Callable[[Reading], Reading]] = {
    "absurd": lambda found: Reading(found.seconds, 1e6 * found.seconds),
    "backwards": lambda found: Reading(found.seconds, -1.0),
    "silent": lambda found: reading(found.seconds, {"gpu 1": 0.0}),
    "only idle": lambda found: Reading(found.seconds, IDLE_WATTS * found.seconds),
    "gone": gone,
}


@pytest.mark.parametrize("alter", USELESS.values(), ids=USELESS)
def test_what_cannot_be_believed_is_not_measured(
    gpu: Gpu, alter: Callable[[Reading], Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "alter", alter)
    with pytest.raises(NotMeasuredError):
        measured(gpu, [1])
    gpu.failure = RuntimeError("out of memory")
    with pytest.raises(NotMeasuredError, match="out of memory"):
        measured(gpu, [1])


def test_what_a_meter_starts_ends_with_the_measuring(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeus watches the processors in a process that would go on for ever."""
    own = get_context("spawn").Process(target=time.sleep, args=(PATIENT,))
    own.start()

    def begin() -> Any:
        get_context("spawn").Process(target=time.sleep, args=(PATIENT,)).start()
        return Gpu.begin(gpu)

    monkeypatch.setattr(gpu, "begin", begin)
    measured(gpu, [1])
    assert active_children() == [own]
    own.kill()
    own.join()


@pytest.mark.parametrize(
    ("is_initialized", "held", "expected"),
    [(True, [0, 5], [1]), (True, [0, 0], []), (False, [0, 5], [])],
)
def test_the_gpus_are_those_on_which_torch_holds_the_encoder(
    is_initialized: bool, held: list[int], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(
        is_initialized=lambda: is_initialized,
        device_count=lambda: len(held),
        memory_allocated=held.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert worker.gpus_in_use() == expected
    assert worker.has_gpu() == is_initialized  # then it is fed at full priority


def test_what_is_known_of_a_gpu_says_nothing_of_processors(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Consumption([0], (1,), (300.0,), time.perf_counter, "")
    for gpus, expected in (([0], 300.0), ([1], 30.0)):
        monkeypatch.setattr(worker, "gpus_in_use", lambda gpus=gpus: gpus)
        _, found = worker.metered(gpu, known)
        assert isinstance(found, Consumption)
        assert found.watts[0] == pytest.approx(expected)
