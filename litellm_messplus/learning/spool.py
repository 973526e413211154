"""The spool of a worker whose learner is another process: records go to its inbox, and the states
that it publishes are what the worker decides from."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.backlog import Arrivals, Unlogged, ids_of
from litellm_messplus.core.engine import Engine, fingerprints
from litellm_messplus.core.published import Publication
from litellm_messplus.learning.outlet import Outlet
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store import inbox
from litellm_messplus.store.history import arrived_ids

LOOK_SECONDS = 0.02
"""Seconds between two looks at the file of the state: one call of the system."""
ROW_SECONDS = 0.1
"""Seconds between two looks at the row of the state: a small query."""
RETRY_SECONDS = 1.0
SETTLED_SECONDS = 1.0
"""The longest wait until the state includes what was written, after it is safe on disk."""
SILENT_SECONDS = 2.0
"""Seconds without a sign of life of the learner after which nothing waits for it."""
MOST = 10_000
"""The most records kept in mind until a state includes them: if no learner comes, decisions of long
ago stop counting as in flight."""
BEHIND_SECONDS = 1.5
"""Seconds without a sign of life, of which one is given each second, after which the log may lack
what other workers wrote."""
LATE_SECONDS = 5.0
"""The age of a state from which on it is reported as late."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch on its way: its number, the count of its records, its requests by zoo, and the ids
    by which clients know them."""

    number: int
    count: int
    requests: Sequence[tuple[str, str]]
    ids: Sequence[str]


@dataclass(eq=False, repr=False)
class Spool:
    """The records of one ``worker`` on their way to the learner, and the newest state.

    ``position`` is that of the state; ``followed`` is called with it when a new one is there. The
    worker ``has_state`` once a learner with the same settings has published.
    """

    database: AsyncEngine
    engines: Mapping[str, Engine]
    counters: Counters
    worker: str
    outlet: Outlet
    _: KW_ONLY
    followed: Callable[[int], None] | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.position = 0
        self.arrivals = Arrivals(is_late=lambda: self.state_seconds > BEHIND_SECONDS)
        self.has_state = asyncio.Event()
        self._fingerprints = fingerprints(self.engines)
        self._tried = self._number = self._taken = self._epoch = self._workers = 0
        self._notified = 0
        self._putting: tuple[int, list[tuple[str, str]]] = (0, [])
        """The batch that is being put: a state may include it before that is known here."""
        self.look_seconds = 60.0  # nothing is missed without
        self._sent: deque[_Sent] = deque()
        self._in_sent = 0
        self._unlogged = Unlogged()
        self._accepted_at = self.clock()
        self._is_accepted = False
        self._changed = asyncio.Condition()
        self._woken = asyncio.Event()
        self._tasks = Tasks()

    @property
    def state_seconds(self) -> float:
        """The age of the state, in seconds: 0 while the learner gives signs of life."""
        if self._is_accepted:
            return self.outlet.silent_seconds
        return self.clock() - self._accepted_at

    def start(self) -> None:
        """Begin to follow what is published, in the running event loop."""
        self._tasks.start(self._follow(), "state")

    async def append(self, records: Sequence[Record], *, is_durable: bool) -> int:
        """Insert a batch into the inbox, and return its number. Each attempt has another one: the
        answer to a commit may be lost, and the next attempt may have more records.

        Raises UnloggedRequestError if a record is about a dropped request, ValueError for one that
        cannot be encoded, SQLAlchemyError, and DatabaseFileGoneError.
        """
        self._unlogged.check(records)
        data = inbox.encode(records)
        self._tried += 1
        number = self._tried
        requests = [
            (each.zoo, each.request_id) for each in records if isinstance(each, RequestRecord)
        ]
        self._putting = number, requests
        await inbox.put(self.database, self.worker, number, data, is_durable=is_durable)
        return number

    async def is_logged(self, record: Record, error: Exception) -> bool:
        """Return False: the inbox refuses no record because it is there already."""
        return False

    def dropped(self, record: Record) -> None:
        """Note a record that is never written; a request is no longer in flight."""
        if isinstance(record, RequestRecord):
            self._unlogged.add(record)
            self._forget([(record.zoo, record.request_id)])

    async def fold_written(self, records: Sequence[Record], appended: int) -> None:
        """Keep in mind what is in flight until a state includes it, which may be there already."""
        self._number = appended
        _, requests = self._putting
        self._sent.append(_Sent(appended, len(records), requests, [*ids_of(records)]))
        self._in_sent += len(records)
        self._release()
        while self._in_sent > MOST:
            self._let_go()

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

    async def close(self, *, is_written: bool) -> None:
        """Wait for the learner to take what was written, and stop following."""
        if is_written:
            await self.settled()
        await self._tasks.close()

    async def _follow(self) -> None:
        is_file = self.database.dialect.name != "postgresql"
        while True:
            try:
                await self.read()
            except Exception:
                self.counters.failure("states_unread", "the learner's state was not read")
                await asyncio.sleep(RETRY_SECONDS)
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if is_file else ROW_SECONDS):
                    await self._woken.wait()

    async def read(self) -> None:
        """Decide from the newest publication from now on, if there is a new one.

        Raises SQLAlchemyError or OSError if it cannot be read, ValueError if it is none.
        """
        data = await self.outlet.newer()
        if data is not None and self._see(Publication.unpack(data)):
            self._release()
            self.has_state.set()
            async with self._changed:
                self._changed.notify_all()
        if self.position != self._notified:
            await self._notify()

    def _see(self, found: Publication) -> bool:
        """Decide from a publication; return whether it is newer than the last one."""
        if found.epoch < self._epoch:
            self._is_accepted = False
            self.counters.failure(
                "states_of_earlier_learners",
                "a state is by a learner that was deposed: if it stays so, an older database was "
                "put back, and the proxies must be restarted",
            )
            return False
        published = {name: view.fingerprint for name, view in found.views.items()}
        self._is_accepted = self._fingerprints.items() <= published.items()
        if not self._is_accepted:
            self.counters.failure(
                "states_of_other_settings",
                "the learner has other settings than this worker, which decides from what it knew "
                "before: restart the proxies that have the old ones",
            )
            return False
        self._accepted_at = self.clock()
        # A worker that was silent for long is forgotten: what was taken of it stays taken.
        taken = max(found.taken.get(self.worker, 0), self._taken)
        now = found.epoch, found.position, found.workers, taken
        if now == (self._epoch, self.position, self._workers, self._taken):
            return False
        for name, engine in self.engines.items():
            engine.see(found.views[name], found.workers)
        self._epoch, self.position, self._workers, self._taken = now
        return True

    def _release(self) -> None:
        """Let go of all batches that the state includes."""
        while self._sent and self._sent[0].number <= self._taken:
            self.arrivals.arrived(self._let_go().ids)
        if self._putting[0] <= self._taken:
            self._forget(self._putting[1])

    def _let_go(self) -> _Sent:
        """Stop counting the requests of the oldest batch as in flight."""
        sent = self._sent.popleft()
        self._in_sent -= sent.count
        self._forget(sent.requests)
        return sent

    def _forget(self, requests: Iterable[tuple[str, str]]) -> None:
        for zoo, request_id in requests:
            if zoo in self.engines:
                self.engines[zoo].forget(request_id)

    async def _notify(self) -> None:
        """Notify of what the state includes by now, records of other workers too; if that fails, it
        is done with the next reading."""
        upto = self.position
        if expected := self.arrivals.expected:
            found = await arrived_ids(self.database, expected, self._notified, upto)
            self.arrivals.arrived(found)
        self._notified = upto
        if self.followed is not None and self._workers > 1:  # else all of it is this one's
            self.followed(upto)
