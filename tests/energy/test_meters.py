"""Meters read Zeus and zeusd in joules, and say what to do where nothing can be read."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import litellm_messplus
from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.energy.zeus import ReopeningMeter, ZeusdMeter, ZeusMeter, open_meter
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.simulated_power import SimulatedDevice, SimulatedMeter

DEVICE_METER = SimulatedMeter(SimulatedDevice())


def make_meter() -> SimulatedMeter:
    return DEVICE_METER


@dataclass
class Measurement:
    time: float
    gpu_energy: Mapping[int, float]
    cpu_energy: Mapping[int, float] | None = None
    dram_energy: Mapping[int, float] | None = None


@dataclass
class ScriptedMonitor:
    """Zeus's monitor, as far as a meter uses it."""

    measurement: Measurement
    gpu_indices: list[int] = field(default_factory=lambda: [0, 1])
    cpu_indices: list[int] = field(default_factory=list)
    running: list[str] = field(default_factory=list)

    def begin_window(self, key: str, *, sync_execution: bool) -> None:
        assert not sync_execution  # that would import torch, and there is nothing to wait for
        assert key not in self.running
        self.running.append(key)

    def end_window(self, key: str, *, sync_execution: bool) -> Measurement:
        assert not sync_execution
        self.running.remove(key)
        return self.measurement


def test_zeus_sums_gpus_processors_and_memory() -> None:
    monitor = ScriptedMonitor(
        Measurement(5.0, {0: 300.0, 1: 200.0}, {0: 80.0}, {0: 20.0}), [0, 1], [0]
    )
    meter = ZeusMeter(monitor)

    windows = meter.begin(), meter.begin()
    for window in windows:  # which may overlap
        assert window.end() == Reading(5.0, 600.0)
    assert meter.sensors == ("gpu 0", "gpu 1", "cpu 0")
    nothing = ZeusMeter(ScriptedMonitor(Measurement(5.0, {}), []))
    with pytest.raises(NotMeasuredError, match="no sensor counted 0 J"):
        nothing.begin().end()


@dataclass
class Processor:
    cpu_energy_uj: int | None
    dram_energy_uj: int | None


class ScriptedDaemon:
    """zeusd's client, with the counters that are next."""

    endpoint = "gpu-1:4938"

    def __init__(self, *readings: tuple[dict[int, int], dict[int, Processor]]) -> None:
        self._readings = list(readings)

    def get_gpu_energy(self, gpu_ids: list[int]) -> dict[int, int]:
        return {index: self._readings[0][0][index] for index in gpu_ids}

    def get_cpu_energy(self, cpu_ids: list[int] | None = None) -> dict[int, Processor]:
        return self._readings.pop(0)[1]


def test_zeusd_gives_the_differences_of_its_counters_in_joules() -> None:
    daemon = ScriptedDaemon(
        ({0: 1_000_000, 1: 9_000}, {0: Processor(7_000_000, 1_000_000)}),
        ({0: 1_250_000, 1: 19_000}, {0: Processor(9_000_000, 1_500_000)}),
    )
    meter = ZeusdMeter(daemon, [0, 1], [0])

    found = meter.begin().end()

    assert found.joules == pytest.approx(250.0 + 10.0 + 2.0 + 0.5)
    assert found.seconds > 0
    assert (meter.source, meter.sensors) == ("zeusd at gpu-1:4938", ("gpu 0", "gpu 1", "cpu 0"))


@pytest.mark.parametrize(("after", "joules"), [(9_000_000, 1.0), (1_000_000, -7.0)])
def test_a_daemon_that_started_again_gives_a_negative_reading(after: int, joules: float) -> None:
    """And memory that it cannot read is left out."""
    counters = {0: Processor(8_000_000, None)}, {0: Processor(after, None)}
    meter = ZeusdMeter(ScriptedDaemon(*(({}, each) for each in counters)), [], [0])
    assert meter.begin().end().joules == pytest.approx(joules)


def test_a_daemon_that_no_longer_answers_is_not_measured() -> None:
    window = ZeusdMeter(ScriptedDaemon(({}, {0: Processor(1, None)})), [], [0]).begin()

    with pytest.raises(NotMeasuredError, match="zeusd at gpu-1:4938 gave no reading"):
        window.end()


def test_without_zeus_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("zeus", "zeus.monitor", "zeus.exception", "zeus.utils.zeusd"):
        monkeypatch.setitem(__import__("sys").modules, module, None)

    for zeusd in (None, "gpu-1:4938"):
        with pytest.raises(NotMeasuredError, match=r"pip install 'litellm-messplus\[energy\]'"):
            open_meter(zeusd=zeusd)


@pytest.mark.parametrize("attribute", ["DEVICE_METER", "make_meter"])
def test_a_meter_of_ones_own_comes_by_its_dotted_path(attribute: str) -> None:
    assert open_meter(dotted=f"{__name__}:{attribute}").source == "simulated"


@pytest.mark.parametrize(
    "path", ["nowhere:at_all", f"{__name__}:SimulatedDevice", "json:loads", "x"]
)
def test_a_dotted_path_without_a_meter_is_refused_by_name(path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--meter: given '{path}'"):
        open_meter(dotted=path)


def test_zeus_is_imported_when_a_meter_of_it_is_opened_and_not_before() -> None:
    package = Path(litellm_messplus.__file__).parent
    for path in package.rglob("*.py"):
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                assert " zeus" not in ast.unparse(statement), path


# A meter that is away is opened again, where its windows are read.


class Daemon:
    """Away while ``is_away``; counts how often it was opened."""

    def __init__(self) -> None:
        self.is_away = False
        self.opened = 0

    def open(self) -> SimulatedMeter:
        self._answer()
        self.opened += 1
        return SimulatedMeter(SimulatedDevice(), self._read)

    def _read(self, number: int, found: Reading) -> Reading:
        self._answer()
        return found

    def _answer(self) -> None:
        if self.is_away:
            raise NotMeasuredError("away")


def test_a_meter_that_is_away_is_opened_again_and_none_before_the_first_window() -> None:
    daemon = Daemon()
    meter = ReopeningMeter("simulated", daemon.open)
    assert (daemon.opened, meter.sensors) == (0, ())
    daemon.is_away = True
    with pytest.raises(NotMeasuredError, match="away"):
        meter.begin()
    daemon.is_away = False
    meter.begin().end()
    window = meter.begin()
    assert (daemon.opened, meter.sensors) == (1, SimulatedMeter.sensors)
    daemon.is_away = True
    with pytest.raises(NotMeasuredError, match="away"):
        window.end()
    daemon.is_away = False
    assert meter.begin().end().joules > 0
    assert (daemon.opened, meter.sensors) == (2, SimulatedMeter.sensors)
