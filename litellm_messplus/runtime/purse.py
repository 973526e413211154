"""A budget: what may still be spent, by what the log says is left and what was reserved since."""

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

    def learn(self, known: float, read_at: float) -> None:
        """Set what was left at ``read_at`` on the clock. Costs settled more than ``lag`` before
        that are in the log, and released."""
        self.known = known
        self._costs = {name: each for name, each in self._costs.items() if each.until >= read_at}
        self.reserved = sum(each.cost for each in self._costs.values())

    @property
    def left(self) -> float:
        """The money that may be spent now; negative if overspent."""
        return 0.0 if self.known is None else self.known - self.reserved

    def cost(self, name: str) -> float:
        """Return the cost reserved under a name; 0 if none is."""
        found = self._costs.get(name)
        return 0.0 if found is None else found.cost

    def reserve(self, name: str, cost: float) -> None:
        """Reserve an expected cost, replacing the one reserved under the name."""
        self._released(name)
        if len(self._costs) >= MOST:
            self._released(next(iter(self._costs)))
        self._costs[name] = _Reserved(cost, self.clock() + LONGEST_SECONDS)
        self.reserved += cost

    def settled(self, name: str) -> None:
        """Note that a cost is on its way to the log."""
        found = self._costs.get(name)
        if found is not None:
            found.until = self.clock() + self.lag

    def _released(self, name: str) -> None:
        self.reserved -= self.cost(name)
        self._costs.pop(name, None)
