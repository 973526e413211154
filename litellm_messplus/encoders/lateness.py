"""How late an event loop comes to what is due: whoever waits in it is woken by so much too late."""

import asyncio
import time
from collections import deque

LOOK_SECONDS = 0.005
"""From asking to a look, which so falls into whatever the loop is doing then."""
LOOKS = 100
SHARE = 0.9
"""Of the looks that were no later than what is said: the worst moments are too rare to plan for."""
SECONDS = 10.0
"""For how long a look counts."""


class Lateness:
    """Looks again whenever it is asked for, so that it knows the loop under the load there is."""

    def __init__(self) -> None:
        self._found: deque[tuple[float, float]] = deque(maxlen=LOOKS)

    def seconds(self) -> float:
        """What nearly all looks of late were within; 0 where there were none. In the running event
        loop."""
        now = time.perf_counter()
        loop, due = asyncio.get_running_loop(), now + LOOK_SECONDS
        # As a timeout does: one turn of the loop to find it, and one to wake who waits.
        loop.call_later(LOOK_SECONDS, loop.call_soon, self._look, due)
        while self._found and self._found[0][0] < now - SECONDS:
            self._found.popleft()
        found = sorted(late for _, late in self._found)
        return found[int(SHARE * len(found))] if found else 0.0

    def _look(self, due: float) -> None:
        now = time.perf_counter()
        self._found.append((now, now - due))
