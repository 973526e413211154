"""A zeusd daemon on another host: the differences of its counters."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from litellm_messplus.energy.errors import NotMeasuredError
from litellm_messplus.energy.meter import Reading, reading

PORT = 4938
"""On which zeusd listens unless it is told otherwise."""
MILLI, MICRO = 1e-3, 1e-6


class ProcessorCounters(Protocol):
    """What zeusd says of one processor, in microjoules; None for what it cannot read."""

    cpu_energy_uj: int | None
    dram_energy_uj: int | None


class Client(Protocol):
    """The parts of a `zeus.utils.zeusd.ZeusdClient` that are used."""

    @property
    def endpoint(self) -> str: ...

    def get_gpu_energy(self, gpu_ids: list[int]) -> Mapping[int, int]: ...

    def get_cpu_energy(self, cpu_ids: list[int] | None = None) -> Mapping[int, Any]: ...


class ZeusdMeter:
    """Counters of these GPUs and processors, by zeusd's own numbers.

    A reading blocks for one or two requests: in an event loop, it belongs in a thread.
    """

    def __init__(self, client: Client, gpus: Sequence[int], cpus: Sequence[int] = ()) -> None:
        self._client, self._gpus, self._cpus = client, list(gpus), list(cpus)
        self.source = f"zeusd at {client.endpoint}"
        self.sensors = (*(f"gpu {index}" for index in gpus), *(f"cpu {index}" for index in cpus))

    def begin(self) -> "_Window":
        """Raises NotMeasuredError where the daemon does not answer."""
        return _Window(self._counters, time.monotonic(), self._counters())

    def _counters(self) -> dict[str, float]:
        """Joules since the daemon's own beginning, by sensor."""
        try:
            return dict(self._read())
        except Exception as error:  # of the network, the daemon, or the shape of its answer
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
class _Window:
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

    A daemon that asks for a token gets that of the environment variable `ZEUSD_TOKEN`, as with
    every client of Zeus. Raises NotMeasuredError for a daemon that does not answer, or does not
    have what is asked for; ImportError without Zeus.
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
    """Of `HOST` or `HOST:PORT`. Raises NotMeasuredError for what is neither."""
    host, colon, port = address.rpartition(":")
    if not colon:
        return address, PORT
    if not host or not port.isdigit():
        raise NotMeasuredError(f"--zeusd: given {address!r}; allowed: HOST or HOST:PORT")
    return host, int(port)
