"""The authors of answers that LiteLLM's response cache repeats.

The cache stores an answer under the request, whichever candidate answered: the router's choice
for a repeated request does not tell the author of the answer. The answer's id does.
"""

import asyncio

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.messages import Author
from litellm_messplus.records import CallRecord
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.store.answered import author

REMEMBERED = 4096
"""Newest answers kept in memory; older ones are looked up in the log."""
LOOKUP_SECONDS = 0.5
"""Seconds that a repeated answer waits for a database that does not answer."""


class Authors:
    """The authors of the newest answers, and of all answers in the log."""

    def __init__(self, database: AsyncEngine, remembered: int = REMEMBERED) -> None:
        self._database = database
        self._authors: Bounded[tuple[str, str], Author] = Bounded(remembered)

    def wrote(self, zoo: str, call: CallRecord) -> None:
        """Remember a call that a model answered for a user; ignore an answer from the cache."""
        is_new = call.role is CallRole.SERVED and call.status is CallStatus.SUCCESS
        if not is_new or call.is_cache_hit or call.response_id is None:
            return
        key = zoo, call.response_id
        self._authors[key] = Author(call.candidate, call.deployment_id, call.model)

    async def of(self, zoo: str, response_id: str | None) -> Author | None:
        """Find the author of the zoo's answer with that id; None if no call has it.

        Raises TimeoutError or sqlalchemy.exc.SQLAlchemyError if the log cannot be read.
        """
        if response_id is None:
            return None
        found = self._authors.get((zoo, response_id))
        if found is not None:
            return found
        row = await asyncio.wait_for(author(self._database, zoo, response_id), LOOKUP_SECONDS)
        return None if row is None else Author(*row)
