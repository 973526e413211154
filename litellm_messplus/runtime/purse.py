"""A budget: the amount that a worker may spend of money shared by all workers.

All workers read from the log what is left, and none sees what the others spend until the next
reading. So each may spend its part of what was left, less what it has spent since.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_SECONDS = 300.0
"""The longest time for which an unsettled expected cost is reserved."""
MOST = 4096
"""The most expected costs reserved at once; beyond that, the oldest is taken to be logged."""


@dataclass(slots=True)
class _Reserved:
    cost: float
    until: float


@dataclass(eq=False, repr=False)
class Purse:
    """The money for one purpose, in any unit. ``known`` is what was left in the log, reservations
    not subtracted; None before it was read, when nothing may be spent. A settled cost stays
    reserved for another ``lag`` seconds, in which it reaches the log."""

    lag: float
    known: float | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.reserved = 0.0
        self._costs: dict[str, _Reserved] = {}
        self._since_reading = 0.0
        self._workers = 1

    def learn(self, known: float, read_at: float, workers: int = 1) -> None:
        """Set what was left at ``read_at`` on the clock, and how many workers share it. Costs
        settled more than ``lag`` before that are in the log, and released."""
        self.known, self._workers, self._since_reading = known, workers, 0.0
        self._costs = {name: each for name, each in self._costs.items() if each.until >= read_at}
        self.reserved = sum(each.cost for each in self._costs.values())

    @property
    def left(self) -> float:
        """The money that this worker may spend until it reads the log again; negative if
        overspent."""
        if self.known is None:
            return 0.0
        at_reading = self.known - self.reserved + self._since_reading
        return at_reading / self._workers - self._since_reading

    def cost(self, name: str) -> float:
        """Return the cost reserved under a name; 0 if none is."""
        found = self._costs.get(name)
        return 0.0 if found is None else found.cost

    def reserve(self, name: str, cost: float) -> None:
        """Reserve an expected cost, replacing the one reserved under the name."""
        more = cost - self._released(name)
        if len(self._costs) >= MOST:
            self._released(next(iter(self._costs)))
        self._costs[name] = _Reserved(cost, self.clock() + LONGEST_SECONDS)
        self.reserved += cost
        self._since_reading += more

    def settled(self, name: str) -> None:
        """Note that a cost is on its way to the log."""
        found = self._costs.get(name)
        if found is not None:
            found.until = self.clock() + self.lag

    def _released(self, name: str) -> float:
        cost = self.cost(name)
        self._costs.pop(name, None)
        self.reserved -= cost
        return cost
