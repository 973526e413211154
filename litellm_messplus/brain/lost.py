"""Requests that workers which are gone have left open: they are ended, as no one else does it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.journal import Journal
from litellm_messplus.records import CallRecord, served_call_id
from litellm_messplus.runtime.errors import NoAnswerError, error_words
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, Failure
from litellm_messplus.store.answered import left_open

FIRST_SECONDS, SECONDS = 90.0, 3600.0
"""Seconds until the first look, when a silent worker counts as gone, and between two."""
LOST = NoAnswerError("no end was reported")


@dataclass(eq=False, repr=False)
class LostRequests:
    """The ends of the requests of workers that are gone."""

    database: AsyncEngine
    journal: Journal

    def start(self, periodic: Periodic) -> None:
        """Begin to look for them, in the running event loop."""
        failed = "outcome_failures", "ends were not looked for"
        periodic.every(SECONDS, self.end, *failed, first=FIRST_SECONDS)

    async def end(self) -> None:
        """End what workers that are gone left open. Raises SQLAlchemyError."""
        for request_id, chosen in await left_open(self.database, datetime.now(UTC)):
            lost = CallRecord(
                call_id=served_call_id(request_id),
                request_id=request_id,
                ended_at=datetime.now(UTC),
                role=CallRole.SERVED,
                status=CallStatus.FAILURE,
                candidate=chosen,
                error=error_words(LOST),
                failure=Failure.UNKNOWN,
            )
            self.journal.write(lost)
