"""A meter that may be away: opened when it is first read, and again after whatever failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litellm_messplus.energy.meter import Meter, Reading, Window


class ReopeningMeter:
    """``open_meter`` is called where a window begins, so in the thread that the meter is read in.

    ``sensors`` are those of the meter that was opened last, none before.
    """

    def __init__(self, source: str, open_meter: Callable[[], Meter]) -> None:
        self.source = source
        self.sensors: Sequence[str] = ()
        self._open_meter = open_meter
        self._meter: Meter | None = None

    def begin(self) -> "_Window":
        """Raises NotMeasuredError where the meter cannot be opened or does not answer."""
        if self._meter is None:
            self._meter = self._open_meter()
            self.sensors = self._meter.sensors
        try:
            return _Window(self._meter.begin(), self._forget)
        except Exception:
            self._forget()
            raise

    def _forget(self) -> None:
        self._meter = None


@dataclass(frozen=True, slots=True)
class _Window:
    window: Window
    failed: Callable[[], None]

    def end(self) -> Reading:
        try:
            return self.window.end()
        except Exception:
            self.failed()
            raise
