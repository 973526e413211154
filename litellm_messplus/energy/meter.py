"""The interface of a meter of joules: begin a window, work, and end it for a reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from litellm_messplus.runtime.errors import MessplusError

# Errors that a user of `messplus profile` can meet.


class NotMeasuredError(MessplusError):
    """No sensor counted anything. That is not zero joules; the message has the remedy."""


class EndpointError(MessplusError):
    """The endpoint did not answer a request as a profile needs it."""


class FitError(MessplusError):
    """The windows do not determine the cost of a token; the message has the reason."""


PLAUSIBLE_WATTS = 2000.0
"""Upper bound on the power of any one sensor: the largest accelerator modules draw 1,400 W."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The energy of one window: ``joules`` of all sensors together, idle power included."""

    seconds: float
    joules: float


class Window(Protocol):
    """A window that has begun."""

    def end(self) -> Reading:
        """End the window, and return its reading. Raises NotMeasuredError if a sensor counted
        nothing."""


class Meter(Protocol):
    """A meter that measures windows, one after the other.

    ``source`` names the measuring system, ``sensors`` the parts of the hardware it measures.
    """

    @property
    def source(self) -> str: ...

    @property
    def sensors(self) -> Sequence[str]: ...

    def begin(self) -> Window:
        """Begin a window."""


def plausible_watts(meter: Meter) -> float:
    """Return the power above which a reading of this meter is absurd."""
    return PLAUSIBLE_WATTS * len(meter.sensors)


def reading(seconds: float, joules: Mapping[str, float]) -> Reading:
    """Sum over all sensors, from the joules of each by its name.

    A counter that ran backwards makes the whole reading negative: the sum with the others could
    hide it. Raises NotMeasuredError if there is no sensor, or if one counted nothing at all; even
    an idle device draws power.
    """
    silent = [name for name, counted in joules.items() if counted == 0]
    if silent or not joules:
        raise NotMeasuredError(
            f"{', '.join(silent) or 'no sensor'} counted 0 J in {seconds:.3g} s, which is not "
            "measured: the device may not support it, or this user may not read it (`python -m "
            "zeus.show_env` on the GPU host shows). Name devices that can be read with --gpu, or "
            "run this as root; a window must last longer than the counters take to move, which "
            "--seconds sets"
        )
    backwards = [counted for counted in joules.values() if counted < 0]
    return Reading(seconds, sum(backwards or joules.values()))
