"""The process of a slow encoder on a machine with a sensor, which is simulated: it draws IDLE_WATTS
at all times, and WATTS more for each second that this process computes.

`litellm_messplus.encoders.process.WORKER` is to name this module. It stands alone, so that it can
be copied to where another process finds it.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from litellm_messplus.encoders import process as consumption
from litellm_messplus.encoders import worker
from litellm_messplus.energy.meter import Reading, reading

IDLE_WATTS = 10.0
WATTS = 40.0
SENSOR = "MESSPLUS_TEST_SENSOR"
"""What is wrong with it, where the environment says so: it is `silent`, or `broken`."""


def joules() -> float:
    """Since some beginning."""
    return IDLE_WATTS * time.perf_counter() + WATTS * time.process_time()


@dataclass(frozen=True)
class Window:
    began: float = field(default_factory=time.perf_counter)
    joules: float = field(default_factory=joules)

    def end(self) -> Reading:
        is_silent = os.environ.get(SENSOR) == "silent"
        counted = 0.0 if is_silent else joules() - self.joules
        return reading(time.perf_counter() - self.began, {"cpu 0": counted})


class SimulatedMeter:
    source = "simulated"
    sensors = ("cpu 0",)

    def begin(self) -> Window:
        if os.environ.get(SENSOR) == "broken":
            raise RuntimeError("the sensor is gone")
        return Window()


def open_meter(*, gpus: Sequence[int], with_cpu: bool) -> SimulatedMeter:
    assert with_cpu
    assert not gpus
    return SimulatedMeter()


if __name__ == "__main__":
    vars(consumption).update(open_meter=open_meter, SECONDS=0.1)
    worker.main(*sys.argv[1:])
