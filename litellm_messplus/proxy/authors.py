"""Who wrote the answers that LiteLLM's response cache repeats.

The cache keeps an answer under what was asked, whichever candidate answered: the router's choice
for a repeated request says nothing of who wrote what the user gets. The answer's id does.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallRecord, CallStatus
from litellm_messplus.store.authors import author

REMEMBERED = 4096
"""Answers, the newest; the others are looked up in the log."""
LOOKUP_SECONDS = 0.5
"""How long a repeated answer waits for a database that does not answer."""


@dataclass(frozen=True, slots=True)
class Author:
    """``candidate`` is None outside the zoo; all are None where nobody knows."""

    candidate: str | None
    deployment_id: str | None
    model: str | None

    @property
    def name(self) -> str | None:
        """As the headers say it: LiteLLM's id of the deployment where it is no candidate."""
        return self.candidate or self.deployment_id


UNKNOWN = Author(None, None, None)


class Authors:
    """Of this process's newest answers, and of all that the log holds."""

    def __init__(self, database: AsyncEngine, remembered: int = REMEMBERED) -> None:
        self._database = database
        self._remembered = remembered
        self._authors: OrderedDict[tuple[str, str], Author] = OrderedDict()

    def __len__(self) -> int:
        return len(self._authors)

    def wrote(self, zoo: str, call: CallRecord) -> None:
        """Remember a call that a model answered; a repetition is passed over."""
        if call.is_cache_hit or call.status is not CallStatus.SUCCESS or call.response_id is None:
            return
        key = zoo, call.response_id
        self._authors[key] = Author(call.candidate, call.deployment_id, call.model)
        self._authors.move_to_end(key)
        if len(self._authors) > self._remembered:
            self._authors.popitem(last=False)

    async def of(self, zoo: str, response_id: str | None) -> Author | None:
        """The author of the zoo's answer with that id; None where no call is known by it.

        Raises TimeoutError or sqlalchemy.exc.SQLAlchemyError where the log cannot be asked.
        """
        if response_id is None:
            return None
        found = self._authors.get((zoo, response_id))
        if found is not None:
            return found
        row = await asyncio.wait_for(author(self._database, zoo, response_id), LOOKUP_SECONDS)
        return None if row is None else Author(*row)
