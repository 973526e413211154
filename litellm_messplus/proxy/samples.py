"""What the unseen calls of watched zoos may cost in a day, by what all workers spent."""

import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, date, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.labels.key_shares import KeyShares
from litellm_messplus.labels.purchasing import own_share
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store.spending import sampled_on
from litellm_messplus.store.worker_counters import running
from litellm_messplus.tasks import Periodic

LOOK_SECONDS = 5.0
"""Between two looks at what all workers spent."""
LOGGED_SECONDS = 60.0
"""After which what this worker has paid for is in the log."""
MOST_RESERVED = 4096
"""Calls that are remembered until they are in the log; of more the oldest counts as logged."""


class SamplePurse:
    """The money of one zoo, of which each key has a part. Without a budget it pays for everything;
    with one, for nothing before it has looked at the log."""

    def __init__(self, budget: float | None) -> None:
        self._budget = budget
        self._spent: float | None = None
        self._reserved: deque[tuple[float, float]] = deque(maxlen=MOST_RESERVED)
        self._since_look = 0.0
        self._workers = 1
        self._keys = KeyShares()

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget to hold."""
        return self._budget is not None

    def learn(self, spent: float, now: float, workers: int = 1) -> None:
        """Take over what was spent today, as the log says it. Until the next look so many workers
        share what is left."""
        self._spent, self._since_look, self._workers = spent, 0.0, workers
        while self._reserved and self._reserved[0][0] < now - LOGGED_SECONDS:
            self._reserved.popleft()

    def pay(self, key: str | None, cost: float, now: float, today: date) -> bool:
        """Reserve the cost of a call for a request of that key; False where the budget does not
        allow it."""
        if self._budget is None:
            return True
        self._keys.asked(key, today)
        if self._spent is None:
            return False
        left = self._budget - self._spent - sum(each for _, each in self._reserved)
        left = own_share(left + self._since_look, self._since_look, self._workers)
        if cost > left or not self._keys.allows(key, cost, left, self._budget):
            return False
        self._keys.spend(key, cost)
        self._reserved.append((now, cost))
        self._since_look += cost
        return True


class SamplePurses:
    """The purses of all zoos, one a worker."""

    def __init__(
        self, zoos: Mapping[str, ZooSettings], database: AsyncEngine, counters: Counters
    ) -> None:
        self._purses = {name: SamplePurse(zoo.watch.budget_per_day) for name, zoo in zoos.items()}
        self._database = database
        self._counters = counters

    def pay(self, zoo: str, key: str | None, cost: float) -> bool:
        """Reserve the cost of a call of a zoo, for a request of that key; False where its budget
        does not allow it."""
        return self._purses[zoo].pay(key, cost, time.monotonic(), datetime.now(UTC).date())

    def start(self, periodic: Periodic) -> None:
        """Begin to read what was spent, where there is a budget."""
        if any(purse.is_limited for purse in self._purses.values()):
            failed = "what samples cost was not read"
            periodic.every(LOOK_SECONDS, self.look, "sample_cost_failures", failed)

    async def look(self) -> None:
        """Take what all workers spent today. Raises SQLAlchemyError."""
        now = time.monotonic()
        async with self._database.connect() as connection:
            spent = await sampled_on(connection, datetime.now(UTC).date())
            workers = await running(connection, datetime.now(UTC))
        for zoo, purse in self._purses.items():
            purse.learn(spent.get(zoo, 0.0), now, workers)
