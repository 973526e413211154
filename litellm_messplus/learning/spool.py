"""The spool of a worker whose learner is another process: records go to its inbox, and the states
that it publishes are what the worker decides from."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.backlog import Arrivals
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.learning.outlet import CHANNEL, Outlet
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.state.published import Publication
from litellm_messplus.state.snapshot import fingerprint
from litellm_messplus.store import inbox
from litellm_messplus.store.history import arrived_ids
from litellm_messplus.store.notices import LogNotices

LOOK_SECONDS = 0.02
"""Seconds between two looks at the file of the state: one call of the system."""
NOTICED_SECONDS = 1.0
"""Seconds between two looks at the row of the state, between notices."""
GAP_SECONDS = 0.1
"""The least seconds between two readings of the row."""
SETTLED_SECONDS = 1.0
"""The longest wait until the state includes what was written, after it is safe on disk."""
SILENT_SECONDS = 2.0
"""Seconds without a sign of life of the learner after which nothing waits for it."""
MOST = 10_000
"""The most records kept in mind until a state includes them: if no learner comes, decisions of long
ago stop counting as in flight."""
LATE_SECONDS = 5.0
"""The age of a state from which on it is reported as late."""


@dataclass
class _Sent:
    """A batch on its way: its number, its records, and its requests by zoo."""

    number: int
    records: Sequence[Record] = field(repr=False)

    def forget_in(self, engines: Mapping[str, Engine]) -> None:
        """Stop counting its requests as in flight."""
        for record in self.records:
            if isinstance(record, RequestRecord) and record.zoo in engines:
                engines[record.zoo].forget(record.request_id)


class Spool:
    """The records of one ``worker`` on their way to the learner, and the newest state.

    ``position`` is that of the state; ``followed`` is called with it when a new one is there. The
    worker ``has_state`` once a learner with the same settings has published.
    """

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        counters: Counters,
        worker: str,
        outlet: Outlet,
        *,
        followed: Callable[[int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.position = 0
        self.arrivals = Arrivals()
        self.has_state = asyncio.Event()
        self._database = database
        self._engines = engines
        self._counters = counters
        self._worker = worker
        self._outlet = outlet
        self._followed = followed
        self._clock = clock
        self._number = self._taken = self._epoch = 0
        self._sent: deque[_Sent] = deque()
        self._accepted_at = clock()
        self._is_accepted = False
        self._changed = asyncio.Condition()
        self._woken = asyncio.Event()
        self._tasks = Tasks()

    @property
    def state_seconds(self) -> float:
        """The age of the state, in seconds: 0 while the learner gives signs of life."""
        if self._is_accepted:
            return self._outlet.silent_seconds
        return self._clock() - self._accepted_at

    @property
    def look_seconds(self) -> float:
        """The longest time between two calls of ``look``, which does nothing here."""
        return 60.0

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to follow what is published, in the running event loop."""
        self._tasks.start(self._follow(), "state")
        if self._database.dialect.name == "postgresql":
            told = LogNotices(self._database, lambda _: self._woken.set(), self._lost, CHANNEL)
            self._tasks.start(told.run(), "state-notices")

    async def append(self, records: Sequence[Record], *, is_durable: bool) -> None:
        """Insert a batch into the inbox. Raises ValueError for a record that cannot be encoded,
        SQLAlchemyError, and DatabaseFileGoneError."""
        number = self._number + 1
        data = inbox.encode(records)
        await inbox.put(self._database, self._worker, number, data, is_durable=is_durable)
        self._number = number

    async def is_logged(self, record: Record, error: Exception) -> bool:
        """Return False: the inbox refuses no record because it is there already."""
        return False

    def dropped(self, record: Record) -> None:
        """Stop counting a request as in flight that is never written."""
        _Sent(0, [record]).forget_in(self._engines)

    async def fold_written(self, records: Sequence[Record], appended: None) -> None:
        """Keep in mind what is in flight until a state includes it."""
        self._sent.append(_Sent(self._number, records))
        while sum(len(sent.records) for sent in self._sent) > MOST:
            self._sent.popleft().forget_in(self._engines)

    async def settled(self) -> None:
        """Return when the state includes all that was written; after a second, or if the learner is
        silent, without that."""
        number = self._number
        if self._taken >= number or self.state_seconds > SILENT_SECONDS:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_SECONDS), self._changed:
                await self._changed.wait_for(lambda: self._taken >= number)

    async def look(self) -> None:
        """Have the newest state read: something was written without this worker."""
        self._woken.set()

    async def look_up_to_notice(self) -> None:
        """Have the newest state read."""
        self._woken.set()

    async def close(self, *, is_written: bool) -> None:
        """Wait for the learner to take what was written, and stop following."""
        if is_written:
            await self.settled()
        await self._tasks.close()

    async def _follow(self) -> None:
        is_file = self._database.dialect.name != "postgresql"
        while True:
            try:
                await self.read()
            except Exception:
                self._counters.failure("states_unread", "the learner's state was not read")
                await asyncio.sleep(NOTICED_SECONDS)
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if is_file else NOTICED_SECONDS):
                    await self._woken.wait()
            if not is_file:
                await asyncio.sleep(GAP_SECONDS)

    async def read(self) -> None:
        """Decide from the newest publication from now on, if there is a new one.

        Raises SQLAlchemyError or OSError if it cannot be read, ValueError if it is none.
        """
        data = await self._outlet.newer()
        if data is not None:
            before = self.position
            if self._see(Publication.unpack(data)):
                await self._notify(before)

    def _see(self, found: Publication) -> bool:
        """Decide from a publication; return whether it is newer than the last one."""
        if found.epoch < self._epoch:  # of a deposed learner
            return False
        mine = {
            name: fingerprint(engine.zoo, engine.encoder.name)
            for name, engine in self._engines.items()
        }
        published = {name: view.fingerprint for name, view in found.views.items()}
        self._is_accepted = mine.items() <= published.items()
        if not self._is_accepted:
            self._counters.failure(
                "states_of_other_settings",
                "the learner has other settings than this worker, which decides from what it knew "
                "before: restart the proxies that have the old ones",
            )
            return False
        self._accepted_at = self._clock()
        taken = found.taken.get(self._worker, 0)
        if (found.epoch, found.position) == (self._epoch, self.position) and taken == self._taken:
            return False
        for name, engine in self._engines.items():
            engine.see(found.views[name], found.position, found.workers)
        self._epoch, self.position, self._taken = found.epoch, found.position, taken
        return True

    async def _notify(self, before: int) -> None:
        records: list[Record] = []
        while self._sent and self._sent[0].number <= self._taken:
            sent = self._sent.popleft()
            sent.forget_in(self._engines)
            records += sent.records
        self.has_state.set()
        async with self._changed:
            self._changed.notify_all()
        self.arrivals.came(records)
        if self.position > before:
            if expected := self.arrivals.expected:  # records of other workers
                found = await arrived_ids(self._database, expected, before, self.position)
                self.arrivals.arrived(found)
            if self._followed is not None:
                self._followed(self.position)

    def _lost(self, error: Exception) -> None:
        self._counters.failure(
            "log_notices_lost", f"the learner's states are noticed late: {error!r}"
        )
