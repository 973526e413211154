"""Zeus on this host: GPUs, and on request processors and memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from litellm_messplus.energy.errors import NotMeasuredError
from litellm_messplus.energy.meter import Reading, reading

NO_GPU = (
    "Zeus found no GPU on this host: run `messplus profile` on the host of the GPUs, or start "
    "zeusd there and give --zeusd HOST:PORT; on a host without a GPU, --cpu measures the processors"
)
NO_CPU = (
    "--cpu: Zeus cannot read the processors' energy counters (RAPL): run as a user who may read "
    "/sys/class/powercap/intel-rapl*/energy_uj, usually root, or start zeusd as root and give "
    "--zeusd HOST:PORT; leave out --cpu to measure the GPUs alone"
)


class Measurement(Protocol):
    """The parts of a `zeus.monitor.Measurement` that are read: joules by index, and seconds."""

    time: float
    gpu_energy: Mapping[int, float]
    cpu_energy: Mapping[int, float] | None
    dram_energy: Mapping[int, float] | None


class Monitor(Protocol):
    """The parts of a `zeus.monitor.ZeusMonitor` that are used."""

    gpu_indices: list[int]
    cpu_indices: list[int]

    def begin_window(self, key: str, *, sync_execution: bool) -> None: ...

    def end_window(self, key: str, *, sync_execution: bool) -> Measurement: ...


class ZeusMeter:
    """Windows of a ZeusMonitor."""

    source = "zeus"

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._keys = (f"messplus {number}" for number in count())
        self.sensors = (
            *(f"gpu {index}" for index in monitor.gpu_indices),
            *(f"cpu {index}" for index in monitor.cpu_indices),
        )

    def begin(self) -> "_Window":
        """A window of its own; nothing waits for a GPU, whose work another process sends."""
        key = next(self._keys)
        self._monitor.begin_window(key, sync_execution=False)
        return _Window(self._monitor, key)


@dataclass(frozen=True, slots=True)
class _Window:
    monitor: Monitor
    key: str

    def end(self) -> Reading:
        measured = self.monitor.end_window(self.key, sync_execution=False)
        joules = {f"gpu {index}": each for index, each in measured.gpu_energy.items()}
        joules |= {f"cpu {index}": each for index, each in (measured.cpu_energy or {}).items()}
        joules |= {f"dram {index}": each for index, each in (measured.dram_energy or {}).items()}
        return reading(measured.time, joules)


def open_zeus(gpus: Sequence[int] | None, *, with_cpu: bool) -> ZeusMeter:
    """Measure these GPUs of this host, all of them for None.

    Zeus itself leaves out in silence what it cannot read. Raises NotMeasuredError for a GPU that
    is not there and for what was asked for and cannot be read, ImportError without Zeus.
    """
    if with_cpu:
        _require_processors()
    from zeus.monitor import ZeusMonitor

    try:
        monitor: Any = ZeusMonitor(
            gpu_indices=None if gpus is None else list(gpus), cpu_indices=None if with_cpu else []
        )
    except Exception as error:  # ValueError, IndexError or a Zeus error, as the driver has it
        named = "all" if gpus is None else ", ".join(map(str, gpus))
        raise NotMeasuredError(f"--gpu: given {named}: {error}. {NO_GPU}") from error
    if with_cpu and not monitor.cpu_indices:
        raise NotMeasuredError(NO_CPU)
    if not with_cpu and not monitor.gpu_indices:
        raise NotMeasuredError(NO_GPU)
    return ZeusMeter(monitor)


def _require_processors() -> None:
    """Asked before the monitor is imported, which takes seconds. Raises NotMeasuredError."""
    from zeus.device import get_cpus

    try:
        get_cpus()
    except Exception as error:  # a Zeus error, whose kinds differ by what the host lacks
        raise NotMeasuredError(NO_CPU) from error
