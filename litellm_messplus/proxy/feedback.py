"""Feedback: from what a client posts to a durable label."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.errors import (
    RequestGoneError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.identity import new_id
from litellm_messplus.journal import Journal
from litellm_messplus.label_kind import LabelKind
from litellm_messplus.proxy.authentication import Caller
from litellm_messplus.proxy.key_influence import KeyInfluence
from litellm_messplus.proxy.request_finder import RequestFinder
from litellm_messplus.proxy.response_bias import ResponseBias
from litellm_messplus.proxy.token_buckets import TokenBuckets
from litellm_messplus.records import LabelRecord, served_call_id
from litellm_messplus.store import history
from litellm_messplus.store.call_verdicts import CallVerdicts, call_verdicts
from litellm_messplus.store.key_activity import SPAN

DURABLE_SECONDS = 5.0
"""How long a client waits for a database that does not answer."""
MOST_VERDICTS = 100
"""Of users on one call: whoever changes his mind more often does not judge."""


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


class Outcome(StrEnum):
    """What became of a verdict."""

    COUNTED = "counted"
    UNCHANGED = "unchanged"
    BEYOND_INFLUENCE = "beyond_influence"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A verdict that is durable."""

    request_id: str
    call_id: str
    satisfaction: float
    outcome: Outcome


class FeedbackDesk:
    """Finds the request that feedback is for, and writes the label."""

    def __init__(
        self,
        database: AsyncEngine,
        journal: Journal,
        finder: RequestFinder,
        response_bias: ResponseBias,
        influence: KeyInfluence,
        buckets: TokenBuckets,
        counters: Counters,
    ) -> None:
        self._database = database
        self._journal = journal
        self._finder = finder
        self._response_bias = response_bias
        self._influence = influence
        self._buckets = buckets
        self._counters = counters
        self._being_written: Counter[str] = Counter()

    async def accept(self, feedback: Feedback, caller: Caller) -> Accepted:
        """Write the verdict; returns when it is durable.

        Raises UnknownRequestError, TooOftenError or TooManyVerdictsError; TimeoutError or
        SQLAlchemyError where the database does not take it.
        """
        self._admit(caller)
        try:
            return await self._accept(feedback, caller)
        except RequestGoneError as error:  # pruned since it was found
            self._counters.add("feedback_unknown")
            raise UnknownRequestError(feedback.id) from error
        except UnknownRequestError:
            self._counters.add("feedback_unknown")
            raise

    async def _accept(self, feedback: Feedback, caller: Caller) -> Accepted:
        found = await self._finder.find(feedback.id, caller)
        call_id = feedback.call_id or served_call_id(found.request_id)
        await self._check_call(found.request_id, call_id)
        with self._writing(call_id):
            said = await call_verdicts(self._database, call_id, MOST_VERDICTS)
            accepted = Accepted(found.request_id, call_id, feedback.value, Outcome.COUNTED)
            if said.say(feedback.value, feedback.comment) and said.counting == feedback.value:
                return replace(accepted, outcome=Outcome.UNCHANGED)
            self._check_room(call_id, said)
            if not await self._counts(found, caller, feedback.value, said):
                if said.say(feedback.value, feedback.comment):
                    return replace(accepted, outcome=Outcome.UNCHANGED)
                accepted = replace(accepted, outcome=Outcome.BEYOND_INFLUENCE)
            label = self._label(feedback, found, accepted)
            await asyncio.wait_for(self._journal.write_durably(label), DURABLE_SECONDS)
        return accepted

    async def look_up(self, given: str, caller: Caller) -> history.History:
        """Everything logged about the caller's request, what was just decided included.

        Raises UnknownRequestError or TooOftenError.
        """
        request_id = (await self._finder.find(given, caller)).request_id
        await asyncio.wait_for(self._journal.flush(), DURABLE_SECONDS)
        found = await history.history(self._database, request_id)
        if found is None:  # dropped: the database refused it
            raise UnknownRequestError(given)
        return found

    def _admit(self, caller: Caller) -> None:
        wait = 0.0 if caller.is_admin else self._buckets.take(caller.key_hash)
        if wait > 0.0:
            self._counters.add("feedback_too_often")
            raise TooOftenError("too much feedback of this key", wait)

    async def _check_call(self, request_id: str, call_id: str) -> None:
        if call_id == served_call_id(request_id):
            return
        if not await history.has_ended(self._database, request_id, call_id):
            raise UnknownRequestError(f"{call_id}, as a call of request {request_id}")

    @contextmanager
    def _writing(self, call_id: str) -> Iterator[None]:
        self._being_written[call_id] += 1
        try:
            yield
        finally:
            self._being_written[call_id] -= 1
            if not self._being_written[call_id]:
                del self._being_written[call_id]

    def _check_room(self, call_id: str, said: CallVerdicts) -> None:
        if said.given + self._being_written[call_id] > MOST_VERDICTS:
            self._counters.add("verdicts_refused")
            raise TooManyVerdictsError(f"{call_id} has {said.given} verdicts already")

    async def _counts(
        self, found: history.Found, caller: Caller, value: float, said: CallVerdicts
    ) -> bool:
        """Whether it does is said by its weight. Whoever runs the proxy judges as he likes."""
        if caller.is_admin:
            return True
        is_of_today = said.counted_at is not None and datetime.now(UTC) - said.counted_at < SPAN
        counts = await self._influence.may_count(
            found.zoo,
            found.service_level,
            found.key_hash,
            value,
            said.counting if is_of_today else None,
        )
        if not counts:
            self._counters.add("verdicts_beyond_influence")
        return counts

    def _label(self, feedback: Feedback, found: history.Found, accepted: Accepted) -> LabelRecord:
        weight = 0.0
        if accepted.outcome is Outcome.COUNTED:
            weight = self._response_bias.feedback_weight(
                found.zoo, found.service_level, feedback.value
            )
        return LabelRecord(
            label_id=new_id(),
            call_id=accepted.call_id,
            request_id=accepted.request_id,
            created_at=datetime.now(UTC),
            kind=LabelKind.FEEDBACK,
            source=LabelKind.FEEDBACK,
            value=feedback.value,
            weight=weight,
            comment=feedback.comment,
        )
