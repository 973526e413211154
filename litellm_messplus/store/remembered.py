"""What this process has just written about requests, so that the next batch need not read it.

Most calls end soon after their request was written, and by the same process. It may be relied on
only while nobody else writes: the positions tell, for another writer's records would lie between.
"""

from collections import OrderedDict
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from litellm_messplus.store.contribution import Logged

MOST = 4096
"""Requests, the newest; of an older one the log is asked."""
MOST_LABELS = 16
"""On one request; of one with more the log is asked, which gives only those that matter."""


class Remembered:
    """All that is logged about some requests, up to a position in the log."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._position: int | None = None
        self._requests: OrderedDict[str, Logged] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    def take(self, position: int) -> Mapping[str, Logged]:
        """What is known where the log ended at ``position``. Whoever writes next changes it, and
        only what is committed is given back: else the log is asked anew."""
        if position != self._position:
            self._requests.clear()
        self._position = None
        return self._requests

    def keep(self, known: Mapping[str, Logged], position: int) -> None:
        """The requests of a batch, as they are since its commit at ``position``."""
        for request_id, logged in known.items():
            self._requests.pop(request_id, None)
            if len(logged.labels) <= MOST_LABELS:
                self._requests[request_id] = logged
        while len(self._requests) > self._most:
            self._requests.popitem(last=False)
        self._position = position


_OF_DATABASES: WeakKeyDictionary[Engine, Remembered] = WeakKeyDictionary()


def remembered(database: Engine) -> Remembered:
    """The one of a database that this process has open."""
    return _OF_DATABASES.setdefault(database, Remembered())
