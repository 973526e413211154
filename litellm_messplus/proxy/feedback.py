"""Feedback: from what a client posts to a durable label."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import NotYourRequestError, UnknownRequestError
from litellm_messplus.identity import new_id
from litellm_messplus.journal import Journal
from litellm_messplus.label_kind import LabelKind
from litellm_messplus.proxy.authentication import Caller
from litellm_messplus.proxy.open_requests import OpenRequests
from litellm_messplus.proxy.response_bias import ResponseBias
from litellm_messplus.proxy.response_ids import plain_response_id
from litellm_messplus.records import LabelRecord, RequestRecord, served_call_id
from litellm_messplus.store import history

WAIT_SECONDS = 1.0
"""How long an id may be ahead of the log: another worker writes in batches, and LiteLLM tells the
id of a streamed answer only after the client has it."""
POLL_SECONDS = 0.05
DURABLE_SECONDS = 5.0
"""How long a client waits for a database that does not answer."""


class Feedback(BaseModel):
    """The body of `POST /messplus/feedback`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: Annotated[str, Field(min_length=1, max_length=2048)] = Field(
        description="The `id` of the response, or its `x-litellm-call-id` header."
    )
    satisfied: StrictBool | None = Field(default=None, description="Whether the answer satisfied.")
    score: Annotated[float, Field(ge=0.0, le=1.0, strict=True)] | None = Field(
        default=None, description="Satisfaction from 0 to 1, in place of `satisfied`."
    )
    comment: Annotated[str, Field(max_length=10_000)] | None = Field(
        default=None, description="The user's words."
    )
    call_id: Annotated[str, Field(min_length=1, max_length=80)] | None = Field(
        default=None,
        description="Which call of an exploration is judged; left out, the one the user saw.",
    )

    @model_validator(mode="after")
    def _one_verdict(self) -> "Feedback":
        if (self.satisfied is None) == (self.score is None):
            raise ValueError("give exactly one of `satisfied` and `score`")
        return self

    @property
    def value(self) -> float:
        """Satisfaction from 0 to 1."""
        return float(bool(self.satisfied)) if self.score is None else self.score


@dataclass(frozen=True, slots=True)
class Accepted:
    """A label that is durable."""

    request_id: str
    call_id: str
    satisfaction: float


class FeedbackDesk:
    """Finds the request that feedback is for, and writes the label."""

    def __init__(
        self,
        database: AsyncEngine,
        journal: Journal,
        open_requests: OpenRequests,
        response_bias: ResponseBias,
    ) -> None:
        self._database = database
        self._journal = journal
        self._open = open_requests
        self._response_bias = response_bias

    async def accept(self, feedback: Feedback, caller: Caller) -> Accepted:
        """Write the verdict; returns when it is durable.

        Raises UnknownRequestError or NotYourRequestError; TimeoutError or SQLAlchemyError where
        the database does not take it.
        """
        found = await self.find(feedback.id, caller)
        request_id = found.request_id
        call_id = feedback.call_id or served_call_id(request_id)
        await self._check_call(request_id, call_id)
        label = LabelRecord(
            label_id=new_id(),
            call_id=call_id,
            request_id=request_id,
            created_at=datetime.now(UTC),
            kind=LabelKind.FEEDBACK,
            source=LabelKind.FEEDBACK,
            value=feedback.value,
            weight=self._response_bias.feedback_weight(
                found.zoo, found.service_level, feedback.value
            ),
            comment=feedback.comment,
        )
        await asyncio.wait_for(self._journal.write_durably(label), DURABLE_SECONDS)
        return Accepted(request_id, call_id, label.value)

    async def look_up(self, given: str, caller: Caller) -> history.History:
        """Everything logged about the caller's request, what was just decided included.

        Raises UnknownRequestError or NotYourRequestError.
        """
        request_id = (await self.find(given, caller)).request_id
        await asyncio.wait_for(self._journal.flush(), DURABLE_SECONDS)
        found = await history.history(self._database, request_id)
        if found is None:  # dropped: the database refused it
            raise UnknownRequestError(given)
        return found

    async def find(self, given: str, caller: Caller) -> history.Found:
        """The caller's newest request that goes by ``given``.

        Raises UnknownRequestError where there is none, NotYourRequestError where all are others'.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        told = plain_response_id(given)
        while True:
            owners = await self._owners(told, caller)
            for found in owners:
                if caller.owns(found.key_hash):
                    return found
            if owners:
                raise NotYourRequestError(given)
            if time.monotonic() > deadline:
                raise UnknownRequestError(given)
            await asyncio.sleep(POLL_SECONDS)

    async def _owners(self, given: str, caller: Caller) -> list[history.Found]:
        """What is remembered here is enough where it is the caller's: an id may repeat."""
        remembered = [_found(opened.record) for opened in self._open.find(given)]
        if any(caller.owns(found.key_hash) for found in remembered):
            return remembered
        return remembered + await history.find(self._database, given)

    async def _check_call(self, request_id: str, call_id: str) -> None:
        if call_id == served_call_id(request_id):
            return
        if not await history.has_ended(self._database, request_id, call_id):
            raise UnknownRequestError(f"{call_id}, as a call of request {request_id}")


def _found(record: RequestRecord) -> history.Found:
    return history.Found(record.request_id, record.key_hash, record.zoo, record.service_level)
