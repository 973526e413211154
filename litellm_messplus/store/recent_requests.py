"""What this process wrote, as entries of the fold without reading it back.

Reading back took the event loop nearly as long as writing. It is left out where the entries can
only be what `read_entries` would give: a test holds the two to each other.
"""

from collections import OrderedDict
from collections.abc import Sequence

from litellm_messplus.records import CallRecord, EnergyRecord, GradingRecord, Record, RequestRecord
from litellm_messplus.state.entries import Entry, Labelled
from litellm_messplus.store.entries import decided, settled

REMEMBERED = 4096
"""Requests, the newest; a call that ends later is read back."""


class RecentRequests:
    """Requests written here, and the calls that were labelled before they ended, by anybody."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._requests: OrderedDict[str, RequestRecord] = OrderedDict()
        self._labelled_early: OrderedDict[str, None] = OrderedDict()

    def entries(self, records: Sequence[Record], before: int) -> list[Entry] | None:
        """Make the entries of records at the positions after ``before``; None where the log must be
        asked: for a label, and for a call of a request that is not remembered, or that was labelled
        early."""
        found: list[Entry] = []
        for position, record in enumerate(records, start=before + 1):
            match record:
                case RequestRecord():
                    self._remember(record)
                    found.append(decided(record, position))
                case CallRecord():
                    request = self._requests.get(record.request_id)
                    if request is None or record.call_id in self._labelled_early:
                        return None
                    found.append(
                        settled(record, request, request.features, request.gated, position)
                    )
                case GradingRecord() | EnergyRecord():  # no part of the fold
                    continue
                case _:
                    return None
        return found

    def saw(self, entry: Entry) -> None:
        """Note an entry that was read from the log, whoever wrote it."""
        if isinstance(entry, Labelled) and entry.example is None:
            self._labelled_early[entry.call_id] = None
            if len(self._labelled_early) > self._remembered:
                self._labelled_early.popitem(last=False)

    def _remember(self, record: RequestRecord) -> None:
        self._requests[record.request_id] = record
        if len(self._requests) > self._remembered:
            self._requests.popitem(last=False)
