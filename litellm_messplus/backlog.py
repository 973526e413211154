"""Records that wait to be written, and the callers that wait for them or for the id of one.

The oldest are written first, except verdicts that a client waits for: these are in the next batch,
after all waiting records about their requests. So the records of a request stay in order.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from litellm_messplus.records import CallRecord, Record, RequestRecord, storable
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.errors import NotWrittenError, TooOftenError, UnloggedRequestError

LONGEST = 100_000
"""The most records held while the database is away; further ones are dropped and counted."""
BATCH = 500
"""Records written in one transaction."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A record in the backlog. ``written`` is the future of a caller that waits for the disk, None
    without one. It ``is_begun`` while a transaction writes it, and ``is_given_up`` if no other one
    may write it."""

    record: Record
    number: int
    written: asyncio.Future[None] | None = None
    is_begun: bool = False
    is_committed: bool = False
    is_given_up: bool = False

    @property
    def is_durable(self) -> bool:
        """Whether its commit waits for the disk."""
        return self.written is not None


class Backlog:
    """The unwritten records of one journal, numbered in order of arrival."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        self._durable: dict[int, Waiting] = {}
        self._flushes: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.newest = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether no more records are held."""
        return len(self) >= LONGEST

    @property
    def durable(self) -> list[Waiting]:
        """The records that a caller waits for."""
        return list(self._durable.values())

    def add(self, record: Record, written: asyncio.Future[None] | None) -> Waiting:
        """Queue a record."""
        self.newest += 1
        waiting = self._waiting[self.newest] = Waiting(record, self.newest, written)
        if waiting.is_durable:
            self._durable[self.newest] = waiting
        return waiting

    def has_upto(self, number: int) -> bool:
        """Tell whether any record up to a number is left."""
        return bool(self._waiting) and next(iter(self._waiting)) <= number

    def flushed(self) -> asyncio.Future[None]:
        """Return a future that is done when all records that wait now are gone."""
        future = asyncio.get_running_loop().create_future()
        self._flushes.append((self.newest, future))
        self._tell_flushes()
        return future

    @contextmanager
    def batch(self, upto: int) -> Iterator[list[Waiting]]:
        """Give the records to write in the next transaction: those up to a number, and the
        verdicts. Records not committed at the end wait again, unless given up."""
        found = self._next(upto)
        for each in found:
            each.is_begun = True
        try:
            yield found
        finally:
            for each in found:
                each.is_begun = False
                if each.is_committed:
                    self.end(each)
                elif each.is_given_up:
                    self.give_up(each)

    def give_up(self, waiting: Waiting) -> None:
        """Take a record back: at once, or if the transaction that writes it now fails."""
        waiting.is_given_up = True
        if not waiting.is_begun:
            self.end(waiting, NotWrittenError("it was withdrawn"))

    def end(self, waiting: Waiting, error: Exception | None = None) -> None:
        """Remove a record: it is written or, with an ``error``, never will be."""
        self._waiting.pop(waiting.number, None)
        self._durable.pop(waiting.number, None)
        if waiting.written is not None and not waiting.written.done():
            if error is None:
                waiting.written.set_result(None)
            else:
                waiting.written.set_exception(error)
        self._tell_flushes()

    def _tell_flushes(self) -> None:
        while self._flushes and not self.has_upto(self._flushes[0][0]):
            _, future = self._flushes.popleft()
            if not future.done():
                future.set_result(None)

    def _next(self, upto: int) -> list[Waiting]:
        first = [each for each in islice(self._waiting.values(), BATCH) if each.number <= upto]
        last = first[-1].number if first else 0
        urgent = {number for number in self._durable if number > last}
        if not urgent:
            return first
        # At most half, so that the others are written too, however many verdicts come.
        ahead = {each.number: each for each in self._with_their_requests(urgent)[: BATCH // 2]}
        waits = (each for each in first if each.number not in ahead)
        others = islice(waits, BATCH - len(ahead))
        return sorted((*ahead.values(), *others), key=lambda each: each.number)

    def _with_their_requests(self, urgent: Collection[int]) -> list[Waiting]:
        """Return these records and all earlier ones about their requests, in order."""
        found: list[Waiting] = []
        requests: set[str] = set()
        for waiting in reversed(self._waiting.values()):
            subject = getattr(waiting.record, "request_id", "")
            if waiting.number in urgent or subject in requests:
                requests.add(subject)
                found.append(waiting)
        return found[::-1]


# Look-ups of an id that is not in the log yet: each is notified once, when it arrives.

MOST_WAITING = 1024
"""The most look-ups that wait at once, of all keys."""
MOST_OF_ONE = 32
"""The most look-ups of one key that wait at once."""
AGAIN_SECONDS = 1.0
"""Seconds after which a refused look-up may be retried: the others have ended by then."""


@dataclass(eq=False, repr=False)
class Arrivals:
    """The look-ups that wait for an id, in bounded number: further ones are refused, for any id."""

    most: int = MOST_WAITING
    most_of_one: int = MOST_OF_ONE

    def __post_init__(self) -> None:
        self._waiting: Counter[str | None] = Counter()
        self._expected: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def expecting(self, given: str) -> Iterator[asyncio.Event]:
        """Give an event that is set when a record with that id is added to the log from now on."""
        name, arrived = storable(given), asyncio.Event()
        self._expected[name].add(arrived)
        try:
            yield arrived
        finally:
            self._expected[name].discard(arrived)
            if not self._expected[name]:
                del self._expected[name]

    @contextmanager
    def waiting(self, who: str | None) -> Iterator[None]:
        """Hold a place among the waiting look-ups. Raises TooOftenError if none is free."""
        if self._waiting[who] >= self.most_of_one or self._waiting.total() >= self.most:
            raise TooOftenError("too many look-ups of unknown ids are waiting", AGAIN_SECONDS)
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    def came(self, records: Iterable[Record]) -> None:
        """Wake the look-ups of these records, which are in the log and folded in."""
        for name in ids_of(records) if self._expected else ():
            for arrived in self._expected.get(name, ()):
                arrived.set()


def ids_of(records: Iterable[Record]) -> Iterator[str]:
    """Yield the ids by which a client may know its request."""
    for record in records:
        match record:
            case RequestRecord():
                yield record.request_id
                yield storable(record.asker.litellm_call_id)
            case CallRecord(response_id=str(response_id)):
                yield storable(response_id)


# The requests that were dropped: nothing may be logged about them.

REMEMBERED = 4096
"""The number of newest dropped requests remembered: as many as may be open."""


class Unlogged:
    """The newest requests that were never written."""

    def __init__(self) -> None:
        self._requests: Bounded[str, None] = Bounded(REMEMBERED)

    def add(self, record: RequestRecord) -> None:
        """Note a request that is never written."""
        self._requests[record.request_id] = None

    def check(self, records: Iterable[Record]) -> None:
        """Raise UnloggedRequestError if a record is about a dropped request."""
        for record in records if self._requests else ():
            if getattr(record, "request_id", None) in self._requests:
                raise UnloggedRequestError(
                    "the request was not logged, so that nothing is logged about it; the proxy's "
                    "log has the reason"
                )
