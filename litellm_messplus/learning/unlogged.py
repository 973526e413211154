"""The requests that were dropped: nothing may be logged about them."""

from collections.abc import Iterable

from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.errors import UnloggedRequestError

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
                    "log says why"
                )
