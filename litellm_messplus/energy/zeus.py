"""A meter by Zeus, of this host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from litellm_messplus.energy.meter import Meter, NotMeasuredError, Reading, reading
from litellm_messplus.runtime.loading import load_part

# Zeus on this host: GPUs and, if requested, processors and memory.

NO_GPU = (
    "Zeus found no GPU on this host: run `messplus profile` on the host of the GPUs; on a "
    "host without a GPU, --cpu measures the processors"
)
NO_CPU = (
    "--cpu: Zeus cannot read the processors' energy counters (RAPL): run as a user who may read "
    "/sys/class/powercap/intel-rapl*/energy_uj, usually root; leave out --cpu to measure the GPUs "
    "alone"
)


class Measurement(Protocol):
    """The used members of a `zeus.monitor.Measurement`: joules by index, and seconds."""

    time: float
    gpu_energy: Mapping[int, float]
    cpu_energy: Mapping[int, float] | None
    dram_energy: Mapping[int, float] | None


class Monitor(Protocol):
    """The used members of a `zeus.monitor.ZeusMonitor`."""

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

    def begin(self) -> "_ZeusWindow":
        """Begin a window, without waiting for the GPU, whose work another process sends."""
        key = next(self._keys)
        self._monitor.begin_window(key, sync_execution=False)
        return _ZeusWindow(self._monitor, key)


@dataclass(frozen=True, slots=True)
class _ZeusWindow:
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

    Zeus itself silently omits what it cannot read. Raises NotMeasuredError for a GPU that does not
    exist and for requested parts that cannot be read, ImportError without Zeus.
    """
    if with_cpu:
        _require_processors()
    from zeus.monitor import ZeusMonitor

    try:
        monitor: Any = ZeusMonitor(
            gpu_indices=None if gpus is None else list(gpus), cpu_indices=None if with_cpu else []
        )
    except Exception as error:  # ValueError, IndexError or a Zeus error, depending on the driver
        named = "all" if gpus is None else ", ".join(map(str, gpus))
        raise NotMeasuredError(f"--gpu: given {named}: {error}. {NO_GPU}") from error
    if with_cpu and not monitor.cpu_indices:
        raise NotMeasuredError(NO_CPU)
    if not with_cpu and not monitor.gpu_indices:
        raise NotMeasuredError(NO_GPU)
    return ZeusMeter(monitor)


def _require_processors() -> None:
    """Check that processors can be read, before the monitor is imported, which takes seconds.
    Raises NotMeasuredError."""
    from zeus.device import get_cpus

    try:
        get_cpus()
    except Exception as error:  # a Zeus error, whose type depends on what the host lacks
        raise NotMeasuredError(NO_CPU) from error


# From the command's options to a meter.

_MEMBERS = ("source", "sensors", "begin")
NOT_INSTALLED = (
    "joules are measured with Zeus, which is not installed: pip install 'litellm-messplus[energy]'"
)


def open_meter(
    *,
    dotted: str | None = None,
    gpus: Sequence[int] | None = None,
    with_cpu: bool = False,
) -> Meter:
    """Open a third party's meter by its dotted path, or Zeus on this host.

    Raises NotMeasuredError, with advice, if nothing can be measured; ConfigurationError for a
    dotted path that does not lead to a meter.
    """
    if dotted is not None:
        meter: Meter = load_part("--meter", dotted, "a meter", _MEMBERS)
        return meter
    try:
        return open_zeus(gpus, with_cpu=with_cpu)
    except ImportError as missing:
        raise NotMeasuredError(f"{NOT_INSTALLED} ({missing})") from missing
