"""A meter reads Zeus in joules, and says what to do where nothing can be read."""

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import litellm_messplus
from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.energy.zeus import ZeusMeter, open_meter
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


def test_without_zeus_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("zeus", "zeus.monitor"):
        monkeypatch.setitem(__import__("sys").modules, module, None)

    with pytest.raises(NotMeasuredError, match=r"pip install 'litellm-messplus\[energy\]'"):
        open_meter()


@pytest.mark.parametrize(("gpus", "said"), [(None, "Zeus found no GPU"), ([3], "--gpu: given 3: ")])
def test_a_host_without_a_sensor_says_what_to_do(gpus: list[int] | None, said: str) -> None:
    """With the real package of the extra `energy`."""
    device = pytest.importorskip("zeus.device", reason="the extra `energy` is not installed")
    with suppress(Exception):
        device.get_gpus()
        pytest.skip("this host has a GPU")
    with pytest.raises(NotMeasuredError, match=f"{said}.*run `messplus profile` on the host of"):
        open_meter(gpus=gpus)


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
