"""Which request an id means: one of the caller's own, which may not be in the log yet."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.arrivals import Arrivals
from litellm_messplus.errors import (
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.proxy.authentication import Caller
from litellm_messplus.proxy.open_requests import OpenRequests
from litellm_messplus.proxy.surfaces.answers import plain_response_id
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime import Counters
from litellm_messplus.store import history

WAIT_SECONDS = 1.0
"""How long an id may be ahead of the log: another worker writes in batches, and LiteLLM tells the
id of a streamed answer only after the client has it."""


class RequestFinder:
    """A finder of requests, which looks at most three times: at once, when the log says that the id
    has come, and at the end. Another key's request is answered as one that does not exist, and as
    late."""

    def __init__(
        self,
        database: AsyncEngine,
        open_requests: OpenRequests,
        arrivals: Arrivals,
        counters: Counters,
    ) -> None:
        self._database = database
        self._open = open_requests
        self._arrivals = arrivals
        self._counters = counters

    async def find(self, given: str, caller: Caller, session: str | None = None) -> history.Found:
        """Find the caller's newest request that goes by ``given``, or has the session of that
        digest.

        Raises UnknownRequestError where there is none, TooOftenError where too many are waiting,
        and SQLAlchemyError where the database does not answer.
        """
        told = plain_response_id(given)
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        with self._arrivals.expecting(told) as arrived:
            found = await self._look(told, caller, session)
            if found is None:
                with self._place(caller):
                    found = await self._await(told, caller, arrived, deadline)
        found = found or await self._look(told, caller, session)
        if found is None:
            raise UnknownRequestError(given)
        return found

    async def _await(
        self, given: str, caller: Caller, arrived: asyncio.Event, deadline: float
    ) -> history.Found | None:
        """Wait for the id, and look when it comes; None at the deadline, whatever came."""
        try:
            async with asyncio.timeout_at(deadline):
                await arrived.wait()
                found = await self._look(given, caller)
                if found is None:  # another key's
                    await asyncio.Event().wait()
                return found
        except TimeoutError:
            return None

    @contextmanager
    def _place(self, caller: Caller) -> Iterator[None]:
        try:
            with self._arrivals.waiting(caller.key_hash):
                yield
        except TooOftenError:
            self._counters.add("lookups_refused")
            raise

    async def _look(
        self, given: str, caller: Caller, session: str | None = None
    ) -> history.Found | None:
        for opened in self._open.find(given):
            if caller.owns(opened.record.asker.key_hash):
                opened.ensure_logged()
                return _found(opened.record)
        if caller.is_admin:
            return await history.find(self._database, given, session=session)
        if caller.key_hash is None:
            return None
        return await history.find(self._database, given, caller.key_hash, session)


def _found(record: RequestRecord) -> history.Found:
    return history.Found(
        *(record.request_id, record.asker.key_hash, record.zoo, record.service_level),
        record.counted_with,
    )
