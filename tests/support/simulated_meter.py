"""A meter that measures nothing: its readings are known, but for a little noise, from what a vLLM
server has done.

`messplus profile --meter tests.support.simulated_meter:open_meter` takes the server and the joules
from the environment variable SIMULATED_METER.
"""

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from litellm_messplus.energy.meter import Reading, reading
from tests.support.vllm_counters import Work, work_done

VARIABLE = "SIMULATED_METER"
IDLE_WATTS = 50.0
IDLE_NOISE, WORK_NOISE = 0.005, 0.02
"""Relative standard deviations from window to window, of idle power and of what work takes."""


@dataclass(frozen=True)
class Joules:
    """What each kind of work takes, above IDLE_WATTS."""

    prompt_token: float
    completion_token: float
    request: float

    def of(self, work: Work) -> float:
        return (
            self.prompt_token * work.prompt_tokens
            + self.completion_token * work.completion_tokens
            + self.request * work.requests
        )


@dataclass(frozen=True)
class SimulatedWindow:
    """Begun when the server of the meter had done ``work``."""

    meter: "SimulatedMeter"
    work: Work
    begun: float

    def end(self) -> Reading:
        seconds = time.monotonic() - self.begun
        return reading(seconds, {"simulated": self.meter.joules_since(self.work, seconds)})


@dataclass(frozen=True)
class SimulatedMeter:
    """Of the server at ``url``."""

    url: str
    joules: Joules
    source: str = "simulated"
    sensors: Sequence[str] = ("simulated",)
    noise: random.Random = field(default_factory=lambda: random.Random(0))

    def begin(self) -> SimulatedWindow:
        return SimulatedWindow(self, work_done(self.url), time.monotonic())

    def joules_since(self, work: Work, seconds: float) -> float:
        idle = IDLE_WATTS * seconds * self.noise.gauss(1.0, IDLE_NOISE)
        return idle + self.joules.of(work_done(self.url) - work) * self.noise.gauss(1.0, WORK_NOISE)


def described(url: str, joules: Joules) -> dict[str, str]:
    """The environment in which `open_meter` opens that meter."""
    return {VARIABLE: json.dumps({"url": url, "joules": asdict(joules)})}


def open_meter() -> SimulatedMeter:
    found = json.loads(os.environ[VARIABLE])
    return SimulatedMeter(found["url"], Joules(**found["joules"]))
