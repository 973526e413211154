"""A simulated device whose joules are known: idle power, and a price for every piece of work."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.energy.meter import Reading
from tests.support.upstream import Reply, Upstream


@dataclass
class SimulatedDevice:
    """Draws ``idle_watts`` at all times, and known joules for each token and request.

    ``noise`` is the relative standard deviation of what a piece of work takes.
    """

    idle_watts: float = 60.0
    joules_per_prompt_token: float = 0.0001
    joules_per_completion_token: float = 0.002
    joules_per_request: float = 0.02
    noise: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._work = 0.0
        self._random = random.Random(0)

    def does(self, prompt_tokens: int, completion_tokens: int) -> None:
        """One request has been served."""
        joules = (
            self.joules_per_request
            + self.joules_per_prompt_token * prompt_tokens
            + self.joules_per_completion_token * completion_tokens
        )
        with self._lock:
            self._work += joules * max(0.0, self._random.gauss(1.0, self.noise))

    def joules_until(self, now: float) -> float:
        """Since the beginning, all together."""
        with self._lock:
            return self._work + self.idle_watts * (now - self.began)

    def upstream(self) -> Upstream:
        """An endpoint that runs on this device; a word of a prompt is two of its tokens."""

        def answer(model: str, body: dict[str, Any]) -> Reply:
            prompt_tokens = 2 * len(body["prompt"].split())
            self.does(prompt_tokens, body["max_tokens"])
            return Reply("text", prompt_tokens, body["max_tokens"], delay_seconds=0.002)

        return Upstream(answer)


Alter = Callable[[int, Reading], Reading]


class SimulatedMeter:
    """Reads a simulated device without error, unless ``alter`` changes reading number so and so."""

    source = "simulated"
    sensors = ("simulated gpu 0",)

    def __init__(self, device: SimulatedDevice, alter: Alter = lambda number, found: found) -> None:
        self._device, self._alter = device, alter
        self._number = 0

    def begin(self) -> "_Window":
        number, self._number = self._number, self._number + 1
        now = time.monotonic()
        return _Window(self._device, now, self._device.joules_until(now), number, self._alter)


@dataclass(frozen=True)
class _Window:
    device: SimulatedDevice
    start: float
    joules: float
    number: int
    alter: Alter

    def end(self) -> Reading:
        now = time.monotonic()
        found = Reading(now - self.start, self.device.joules_until(now) - self.joules)
        return self.alter(self.number, found)
