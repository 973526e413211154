"""What encoding draws above idle: measured once, in the encoder's process, before it serves.

The counters of a GPU move some ten times a second, and a batch takes less. So its joules are the
time that it took, multiplied by the power that was measured over seconds of encoding.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import active_children

import numpy as np

from litellm_messplus.encoders.batcher import WARM_UP
from litellm_messplus.energy.fit import above_idle, fault
from litellm_messplus.energy.measure import Idle, idle_of
from litellm_messplus.energy.meter import Meter, NotMeasuredError, Reading, plausible_watts
from litellm_messplus.energy.zeus import open_meter
from litellm_messplus.prediction.encoder import Encoder

SECONDS = 2.0
"""Of each window, at least; of the rest before them, too: clocks fall some time after work."""
IDLE_WINDOWS = 3
SIZES_ON_GPU = (1, 16)
"""Prompts in a batch. One alone leaves most of a GPU idle, and draws far less than a full batch."""
SIZES_ON_CPU = (1,)
"""A core that computes draws the same, whatever it computes."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The power of an encoder: ``watts`` above idle at batches of so many prompts (``sizes``), for
    each second of ``clock``.

    On processors, where ``gpus`` is empty, the clock is the time that they computed for this
    process: in a second of waiting for them, others have them. ``meter`` says what was read.
    """

    gpus: Sequence[int]
    sizes: Sequence[int]
    watts: Sequence[float]
    clock: Callable[[], float]
    meter: str

    def joules(self, prompts: int, seconds: float) -> float:
        """Estimate the joules of one batch that took so many seconds of the clock."""
        return seconds * float(np.interp(prompts, self.sizes, self.watts))

    def __str__(self) -> str:
        parts = zip(self.watts, self.sizes, strict=True)
        watts = ", ".join(f"{each:.3g} W at {size} a batch" for each, size in parts)
        return f"{watts}, above idle ({self.meter})"


def measured(encoder: Encoder, gpus: Sequence[int]) -> Consumption:
    """Measure an encoder that computes on these GPUs, or on processors where there are none.

    Takes seconds where there is a sensor, and else next to nothing. Raises NotMeasuredError.
    """
    try:
        with _no_process_left():
            return _measured(encoder, gpus)
    except NotMeasuredError:
        raise
    except Exception as error:  # of Zeus, of a driver, of the encoder: no reason not to serve
        raise NotMeasuredError(repr(error)) from error


def _measured(encoder: Encoder, gpus: Sequence[int]) -> Consumption:
    meter = open_meter(gpus=gpus, with_cpu=not gpus)
    sizes = SIZES_ON_GPU if gpus else SIZES_ON_CPU
    clock = time.perf_counter if gpus else time.process_time
    batches = [_batches(size) for size in sizes]
    for each in batches:  # idle is the power of an encoder that is loaded, and warm
        encoder.encode(next(each))
    time.sleep(SECONDS)
    idle = idle_of([_resting(meter) for _ in range(IDLE_WINDOWS)], plausible_watts(meter))
    watts = [_watts(meter, encoder, each, idle, clock) for each in batches]
    return Consumption(gpus, sizes, watts, clock, f"{meter.source}: {', '.join(meter.sensors)}")


def _batches(size: int) -> Iterator[list[str]]:
    """Yield batches without a repeated text: an encoder might remember it."""
    for number in count():
        yield [f"{size}, {number}, {place}. {WARM_UP}" for place in range(size)]


def _resting(meter: Meter) -> Reading:
    window = meter.begin()
    time.sleep(SECONDS)
    return window.end()


def _watts(
    meter: Meter,
    encoder: Encoder,
    batches: Iterator[list[str]],
    idle: Idle,
    clock: Callable[[], float],
) -> float:
    """Measure the watts above idle, for each second of the clock. Raises NotMeasuredError."""
    window, started, ends = meter.begin(), clock(), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        encoder.encode(next(batches))
    seconds, found = clock() - started, window.end()
    wrong = fault(found, idle, plausible_watts(meter))
    if wrong is not None or seconds <= 0.0:
        raise NotMeasuredError(f"while it encoded, {meter.source} read {wrong or 'no time'}")
    return above_idle(found, idle) / seconds


@contextmanager
def _no_process_left() -> Iterator[None]:
    """End the processes that are started meanwhile.

    Zeus watches the processors' counters in one that goes on for ever where this one is killed.
    """
    before = active_children()
    try:
        yield
    finally:
        for child in active_children():
            if child not in before:
                child.kill()
                child.join()
