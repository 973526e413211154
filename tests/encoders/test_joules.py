"""What reading prompts takes in joules: measured where there is a sensor, and never guessed."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from multiprocessing import active_children, get_context
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.conformance.encoders import FakeEncoder
from litellm_messplus.encoders import process, worker
from litellm_messplus.encoders.batcher import Encoded, Encoding
from litellm_messplus.encoders.process import (
    Consumption,
    EncoderProcessError,
    ProcessEncoder,
    load_for_requests,
    measured,
)
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.energy.meter import NotMeasuredError, Reading, reading
from litellm_messplus.prediction.encoder import Conversation, FeatureRows
from tests.support import metered_worker, slow_encoders
from tests.support.metered_worker import SENSOR, WATTS
from tests.support.patience import PATIENT, until
from tests.support.slow_encoders import BURNT_SECONDS

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
    monkeypatch.setattr(process, "time", found.clock)
    monkeypatch.setattr(
        process, "open_meter", lambda *, gpus, with_cpu: with_cpu or opened[tuple(gpus)]
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


# What reading prompts takes in joules:


@pytest.fixture
def sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated one, for the processes of encoders."""
    monkeypatch.setattr(process, "WORKER", metered_worker.__name__)


@pytest.fixture
def burning(sensor: None) -> Iterator[ProcessEncoder]:
    with closing(started("Burning")) as found:
        yield found


def started(encoder: str) -> ProcessEncoder:
    found = load_for_requests(f"{slow_encoders.HERE}:{encoder}")
    assert isinstance(found, ProcessEncoder)
    return found


def test_the_joules_of_a_batch_are_its_computing_and_waiting_takes_none(
    burning: ProcessEncoder,
) -> None:
    for texts in (["a"], ["a", "b", "c"], ["a", "wait"]):
        found = burning.encode_metered(texts)
        assert found.rows.shape == (len(texts), 2)
        assert found.joules == pytest.approx(len(texts) * BURNT_SECONDS * WATTS, rel=0.25)


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize(
    ("wrong", "reason"), [("silent", "counted 0 J"), ("broken", "the sensor is gone")]
)
def test_an_encoder_starts_with_a_sensor_that_fails_and_the_log_has_the_reason(
    wrong: str, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SENSOR, wrong)
    caplog.set_level(logging.INFO, "litellm_messplus")
    with closing(started("Burning")) as encoder:
        assert encoder.encode_metered(["a"]).joules is None

    (message,) = [each for each in caplog.messages if "consumes" in each]
    assert message.startswith("what the encoder consumes: not measured: ")
    assert reason in message


def test_a_process_that_comes_up_again_keeps_what_was_measured(
    burning: ProcessEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to requests it would measure theirs, and they would wait for it."""
    monkeypatch.setattr(process, "REST_SECONDS", 0.05)
    monkeypatch.setenv(SENSOR, "silent")
    before = int(burning.encode(["a"])[0, 0])
    os.kill(before, signal.SIGKILL)
    found: list[Encoded] = []

    def is_there() -> bool:
        with suppress(EncoderProcessError):
            found.append(burning.encode_metered(["a"]))
        return bool(found)

    until(is_there)
    assert found[0].rows[0, 0] != before
    assert found[0].joules == pytest.approx(BURNT_SECONDS * WATTS, rel=0.25)


async def encodings(service: FeatureService, *texts: str) -> list[Encoding]:
    """All at once."""
    conversations = [Conversation.of_text(text) for text in texts]
    found = await asyncio.gather(*(service.features(each, PATIENT) for each in conversations))
    return [each for each in found if each is not None]


async def test_the_joules_of_the_requests_add_up_to_those_of_the_encoder(
    burning: ProcessEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = FeatureService(burning, batch=3, wait_seconds=PATIENT)
    together = await encodings(service, "a", "b", "c")
    monkeypatch.setattr(service._batcher, "wait_seconds", 0.0)
    alone = await encodings(service, "d")
    statistics = service.statistics()
    await service.close()

    joules = [each.joules or 0.0 for each in (*together, *alone)]
    assert joules[0] == joules[1] == joules[2] > 0.0
    assert sum(joules) == pytest.approx(statistics.joules)
    assert sum(joules) == pytest.approx(4 * BURNT_SECONDS * WATTS, rel=0.25)
    assert (statistics.prompts, statistics.batches) == (4, 2)


async def test_who_finds_a_prompt_encoded_or_on_its_way_has_it_for_nothing(
    burning: ProcessEncoder,
) -> None:
    service = FeatureService(burning)
    first, second = await encodings(service, "same", "same")
    (cached,) = await encodings(service, "same")
    statistics = service.statistics()
    await service.close()

    assert first.joules == statistics.joules
    assert (second.joules, cached.joules) == (0.0, 0.0)
    assert first.features is second.features is cached.features


@pytest.mark.parametrize("is_fast", [True, False])
async def test_without_a_sensor_nothing_is_measured_and_the_cache_does_not_say_zero(
    is_fast: bool,
) -> None:
    service = FeatureService(FakeEncoder(is_fast=is_fast), wait_seconds=0.0)
    found = [*await encodings(service, "same", "same"), *await encodings(service, "same")]
    statistics = service.statistics()
    await service.close()

    assert [each.joules for each in found] == [None, None, None]
    assert statistics.joules is None
