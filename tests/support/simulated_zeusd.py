"""What a zeusd daemon answers over HTTP, for two simulated GPUs and a simulated processor."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from tests.support.ports import free_port
from tests.support.serving import Serving

GROUPS = ("gpu-read", "cpu-read")


@dataclass
class SimulatedZeusd:
    """GPU i draws ``gpu_watts[i]`` and the processor ``cpu_watts``, its memory half of that.

    They draw it by ``clock``, in seconds.
    ``readings`` are the joules of the GPUs that were asked for, as answered, one after the other.
    """

    gpu_watts: tuple[float, ...] = (100.0, 300.0)
    cpu_watts: float = 80.0
    groups: tuple[str, ...] = GROUPS
    with_token: bool = False
    port: int = field(default_factory=free_port)
    clock: Callable[[], float] = time.monotonic
    readings: list[float] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __post_init__(self) -> None:
        self._began = self.clock()

    def start(self) -> None:
        app = FastAPI()
        app.get("/discover")(self._discover)
        app.get("/gpu/get_cumulative_energy")(self._gpus)
        app.get("/cpu/get_cumulative_energy")(self._cpus)
        self._serving = Serving(app, self.port)

    def stop(self) -> None:
        self._serving.stop()

    async def _discover(self) -> dict[str, Any]:
        gpus = [{"id": index, "name": "simulated"} for index in range(len(self.gpu_watts))]
        return {
            "gpus": gpus,
            "cpus": [{"id": 0, "dram_available": True}],
            "enabled_api_groups": self.groups,
            "auth_required": self.with_token,
        }

    async def _gpus(self, gpu_ids: str) -> dict[str, Any]:
        counted = {
            each: int(1000 * self.gpu_watts[int(each)] * self._seconds())
            for each in gpu_ids.split(",")
        }
        self.readings.append(sum(counted.values()) / 1000)
        return {each: {"energy_mj": millijoules} for each, millijoules in counted.items()}

    async def _cpus(self, cpu_ids: str) -> dict[str, Any]:
        microjoules = int(1e6 * self.cpu_watts * self._seconds())
        counted = {"cpu_energy_uj": microjoules, "dram_energy_uj": microjoules // 2}
        return dict.fromkeys(cpu_ids.split(","), counted)

    def _seconds(self) -> float:
        return self.clock() - self._began
