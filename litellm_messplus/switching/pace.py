"""How many of the requests that are served as before are decided aside: a fair sample of them.

A decision costs more than all else that is done for such a request. The forecast rests on some
thousand of them, so in a busy zoo most would be made for nothing.
"""

from litellm_messplus.switching.modes import WARM_UP


class Pace:
    """The decisions that may be made: the first of all, so that the router learns at once, then so
    many a second. What one second leaves over, the next does not have."""

    def __init__(self, per_second: float, first: int = WARM_UP) -> None:
        self._per_second = per_second
        self._left = float(first)
        self._looked: float | None = None

    def take(self, now: float) -> bool:
        """Take one, at a time in seconds; False where there is none left."""
        gained = 0.0 if self._looked is None else (now - self._looked) * self._per_second
        most = max(self._per_second, 1.0)
        self._left = max(self._left, min(self._left + gained, most))
        self._looked = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
