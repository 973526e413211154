"""Meters by Zeus: on this host, on another host by its daemon, and reopened after a failure."""

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from litellm_messplus.energy.meter import Meter, NotMeasuredError, Reading, Window, reading
from litellm_messplus.runtime.loading import load_part

# Zeus on this host: GPUs and, if requested, processors and memory.

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


# A zeusd daemon on another host: differences of its counters.

PORT = 4938
"""Default port of zeusd."""
MILLI, MICRO = 1e-3, 1e-6


class ProcessorCounters(Protocol):
    """The counters of one processor as zeusd reports them, in microjoules; None for what it cannot
    read."""

    cpu_energy_uj: int | None
    dram_energy_uj: int | None


class Client(Protocol):
    """The used members of a `zeus.utils.zeusd.ZeusdClient`."""

    @property
    def endpoint(self) -> str: ...

    def get_gpu_energy(self, gpu_ids: list[int]) -> Mapping[int, int]: ...

    def get_cpu_energy(self, cpu_ids: list[int] | None = None) -> Mapping[int, Any]: ...


class ZeusdMeter:
    """Counters of these GPUs and processors, by zeusd's own numbers.

    A reading blocks for one or two requests, so with an event loop it belongs in a thread.
    """

    def __init__(self, client: Client, gpus: Sequence[int], cpus: Sequence[int] = ()) -> None:
        self._client, self._gpus, self._cpus = client, list(gpus), list(cpus)
        self.source = f"zeusd at {client.endpoint}"
        self.sensors = (*(f"gpu {index}" for index in gpus), *(f"cpu {index}" for index in cpus))

    def begin(self) -> "_ZeusdWindow":
        """Begin a window."""
        return _ZeusdWindow(self._counters, time.monotonic(), self._counters())

    def _counters(self) -> dict[str, float]:
        """Read the joules since the daemon's start, by sensor."""
        try:
            return dict(self._read())
        except Exception as error:  # of the network, the daemon, or the format of its answer
            raise NotMeasuredError(f"{self.source} gave no reading: {error}") from error

    def _read(self) -> Iterator[tuple[str, float]]:
        if self._gpus:
            for index, counted in self._client.get_gpu_energy(self._gpus).items():
                yield f"gpu {index}", counted * MILLI
        if self._cpus:
            found: Mapping[int, ProcessorCounters] = self._client.get_cpu_energy(self._cpus)
            for index, each in found.items():
                if each.cpu_energy_uj is not None:
                    yield f"cpu {index}", each.cpu_energy_uj * MICRO
                if each.dram_energy_uj is not None:
                    yield f"dram {index}", each.dram_energy_uj * MICRO


@dataclass(frozen=True, slots=True)
class _ZeusdWindow:
    counters: Callable[[], Mapping[str, float]]
    began: float
    before: Mapping[str, float]

    def end(self) -> Reading:
        seconds, after = time.monotonic() - self.began, self.counters()
        if after.keys() != self.before.keys():
            raise NotMeasuredError(
                f"the sensors changed within a window: {', '.join(self.before)} before, "
                f"{', '.join(after)} after"
            )
        return reading(seconds, {name: after[name] - self.before[name] for name in after})


def open_zeusd(address: str, gpus: Sequence[int] | None, *, with_cpu: bool) -> ZeusdMeter:
    """Measure through the daemon at ``HOST`` or ``HOST:PORT``; all its GPUs for None.

    A daemon that requires a token gets that of the environment variable `ZEUSD_TOKEN`, as with
    every client of Zeus. Raises NotMeasuredError for a daemon that does not answer, or lacks a
    requested part; ImportError without Zeus.
    """
    from zeus.exception import ZeusBaseError
    from zeus.utils.zeusd import ZeusdClient, ZeusdConfig, require_capabilities

    host, port = host_and_port(address)
    try:
        config = ZeusdConfig.tcp(host, port, token=os.environ.get("ZEUSD_TOKEN"))
        client = ZeusdClient(config)
        indices = list(client.gpu_ids if gpus is None else gpus)
        processors = list(client.cpu_ids) if with_cpu else []
        require_capabilities(
            client,
            read_gpu=bool(indices),
            read_cpu=with_cpu,
            gpu_ids=indices,
            cpu_ids=processors,
        )
    except ZeusBaseError as error:
        raise NotMeasuredError(
            f"--zeusd: given {address!r}: {error}. Start zeusd on the host of the GPUs (as "
            f"root, so that it may read RAPL), reachable from here, usually on port {PORT}"
        ) from error
    if not indices and not processors:
        raise NotMeasuredError(
            f"--zeusd: given {address!r}: it has no GPU; --cpu measures its processors, if it has "
            "their counters"
        )
    return ZeusdMeter(client, indices, processors)


def host_and_port(address: str) -> tuple[str, int]:
    """Parse `HOST` or `HOST:PORT`. Raises NotMeasuredError for anything else."""
    host, colon, port = address.rpartition(":")
    if not colon:
        return address, PORT
    if not host or not port.isdigit():
        raise NotMeasuredError(f"--zeusd: given {address!r}; allowed: HOST or HOST:PORT")
    return host, int(port)


# A meter that may be unavailable: opened at the first window, and again after any failure.


class ReopeningMeter:
    """A meter that is opened again after a failure. ``open_meter`` is called when a window begins,
    so in the thread in which the meter is read.

    ``sensors`` are those of the meter that was opened last, none before.
    """

    def __init__(self, source: str, open_meter: Callable[[], Meter]) -> None:
        self.source = source
        self.sensors: Sequence[str] = ()
        self._open_meter = open_meter
        self._meter: Meter | None = None

    def begin(self) -> "_ReopeningWindow":
        """Begin a window, after opening the meter if it is not open."""
        if self._meter is None:
            self._meter = self._open_meter()
            self.sensors = self._meter.sensors
        try:
            return _ReopeningWindow(self._meter.begin(), self._forget)
        except Exception:
            self._forget()
            raise

    def _forget(self) -> None:
        self._meter = None


@dataclass(frozen=True, slots=True)
class _ReopeningWindow:
    window: Window
    failed: Callable[[], None]

    def end(self) -> Reading:
        try:
            return self.window.end()
        except Exception:
            self.failed()
            raise


# From the command's options to a meter.

_MEMBERS = ("source", "sensors", "begin")
NOT_INSTALLED = (
    "joules are measured with Zeus, which is not installed: pip install 'litellm-messplus[energy]'"
)


def open_meter(
    *,
    dotted: str | None = None,
    zeusd: str | None = None,
    gpus: Sequence[int] | None = None,
    with_cpu: bool = False,
) -> Meter:
    """Open a third party's meter by its dotted path, a zeusd daemon, or Zeus on this host.

    Raises NotMeasuredError, with advice, if nothing can be measured; ConfigurationError for a
    dotted path that does not lead to a meter.
    """
    if dotted is not None:
        meter: Meter = load_part("--meter", dotted, "a meter", _MEMBERS)
        return meter
    try:
        if zeusd is not None:
            return open_zeusd(zeusd, gpus, with_cpu=with_cpu)
        return open_zeus(gpus, with_cpu=with_cpu)
    except ImportError as missing:
        raise NotMeasuredError(f"{NOT_INSTALLED} ({missing})") from missing


def require_zeusd_client() -> None:
    """Check for the client of a zeusd daemon. Raises NotMeasuredError if it is not installed."""
    try:
        importlib.import_module("zeus.utils.zeusd")
    except ImportError as missing:
        raise NotMeasuredError(f"{NOT_INSTALLED} ({missing})") from missing
