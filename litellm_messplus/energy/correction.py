"""How far a deployment's profile is off in service, followed slowly. Pure."""

import math

RATE = 0.05
"""Of the way, on a logarithmic scale, that one window alone moves the factor."""
BOUND = 10.0
"""A window of that many times what was expected, or as little, is absurd; and the factor stays
within as much of 1."""


def is_absurd(measured: float, expected: float) -> bool:
    """Whether measured joules, above idle, are no use beside those expected."""
    return not (expected > 0 and expected / BOUND <= measured <= expected * BOUND)


class Correction:
    """The factor between a profile's estimates and the measured joules; 1 before any window."""

    def __init__(self) -> None:
        self._log = 0.0

    @property
    def factor(self) -> float:
        """By which an estimate of the profile is to be multiplied."""
        return math.exp(self._log)

    def follow(self, measured: float, expected: float, share: float = 1.0) -> None:
        """A window of ``measured`` joules, where ``expected`` were estimated with the factor.

        ``share`` is this deployment's part of what was expected, from 0 to 1: it moves so much
        less. Raises ValueError for an absurd window.
        """
        if is_absurd(measured, expected):
            raise ValueError(f"{measured} J measured where {expected} J were expected")
        moved = self._log + RATE * share * math.log(measured / expected)
        self._log = min(math.log(BOUND), max(-math.log(BOUND), moved))
