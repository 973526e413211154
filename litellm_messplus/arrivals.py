"""Who waits for an id that is not in the log yet, and is told once when it comes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from litellm_messplus.errors import TooOftenError
from litellm_messplus.records import CallRecord, Record, RequestRecord
from litellm_messplus.store.rows import storable

MOST_WAITING = 1024
"""Look-ups that wait at once, of all keys."""
MOST_OF_ONE = 32
"""Of them, those of one key."""
AGAIN_SECONDS = 1.0
"""After which one that could not wait may come again: the others have waited by then."""


class Arrivals:
    """The look-ups that wait for an id, a bounded number: whoever comes on top is refused, whatever
    it asks for."""

    def __init__(self, most: int = MOST_WAITING, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._waiting: Counter[str | None] = Counter()
        self._expected: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def expecting(self, given: str) -> Iterator[asyncio.Event]:
        """Give an event that is set when a record with that id becomes part of the log, from now
        on."""
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
        """Hold a place among those who wait. Raises TooOftenError where there is none."""
        if self._waiting[who] >= self._most_of_one or self._waiting.total() >= self._most:
            raise TooOftenError("too many look-ups of unknown ids are waiting", AGAIN_SECONDS)
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    @property
    def expected(self) -> frozenset[str]:
        """The ids that somebody waits for."""
        return frozenset(self._expected)

    def came(self, records: Iterable[Record]) -> None:
        """Wake those who wait for these records: they are in the log, and folded in."""
        if self._expected:
            self.arrived(_ids(records))

    def arrived(self, ids: Iterable[str]) -> None:
        """Wake those who wait for these ids: their records are in the log, and folded in."""
        for name in ids:
            for arrived in self._expected.get(name, ()):
                arrived.set()


def _ids(records: Iterable[Record]) -> Iterator[str]:
    """Give the ids by which a client may know its request."""
    for record in records:
        match record:
            case RequestRecord():
                yield record.request_id
                yield storable(record.asker.litellm_call_id)
            case CallRecord(response_id=str(response_id)):
                yield storable(response_id)
