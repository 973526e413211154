"""A meter that is away is opened again, where its windows are read."""

import pytest

from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.energy.zeus import ReopeningMeter
from tests.support.simulated_power import SimulatedDevice, SimulatedMeter


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


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
def meter(daemon: Daemon) -> ReopeningMeter:
    return ReopeningMeter("simulated", daemon.open)


def test_nothing_is_opened_before_the_first_window(daemon: Daemon, meter: ReopeningMeter) -> None:
    assert (daemon.opened, meter.sensors) == (0, ())

    meter.begin().end()
    meter.begin().end()

    assert (daemon.opened, meter.sensors) == (1, SimulatedMeter.sensors)


def test_a_meter_that_is_away_at_first_is_opened_later(
    daemon: Daemon, meter: ReopeningMeter
) -> None:
    daemon.is_away = True
    with pytest.raises(NotMeasuredError, match="away"):
        meter.begin()
    daemon.is_away = False

    assert meter.begin().end().joules > 0


def test_after_a_window_that_failed_it_is_opened_again(
    daemon: Daemon, meter: ReopeningMeter
) -> None:
    window = meter.begin()
    daemon.is_away = True
    with pytest.raises(NotMeasuredError, match="away"):
        window.end()
    daemon.is_away = False

    meter.begin().end()

    assert daemon.opened == 2
    assert meter.sensors == SimulatedMeter.sensors
