"""Feedback: finding the request of an id, and writing the client's verdict on it durably."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, model_validator
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.backlog import Arrivals
from litellm_messplus.brain.influence import KeyInfluence, TokenBuckets
from litellm_messplus.brain.messages import Caller
from litellm_messplus.core.decision import label_weight
from litellm_messplus.journal import Journal
from litellm_messplus.labels.key_pull import LabelContent
from litellm_messplus.labels.source import Cause, Finding
from litellm_messplus.records import LabelRecord, RequestRecord, served_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import (
    MessplusError,
    RequestGoneError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store import history
from litellm_messplus.store.history import CallVerdicts, call_verdicts
from litellm_messplus.store.key_activity import SPAN
from litellm_messplus.store.rows import STORABLE

# Finding the request of an id: one of the caller's own, which may not be in the log yet.

WAIT_SECONDS = 1.0
"""Seconds that an id may be ahead of the log: another worker writes in batches, and LiteLLM reports
the id of a streamed answer only after the client has it."""


Decode = Callable[[str], Awaitable[str]]
FindOpened = Callable[[str, "Caller"], RequestRecord | None]
"""Finds the record of a caller's newest request that has an id, among those in memory; it is
logged, or will be."""


@dataclass(eq=False, repr=False)
class RequestFinder:
    """A finder of requests, which looks at most three times: at once, when the id has reached the
    log, and at the deadline. Another key's request is answered like one that does not exist, and
    as late."""

    database: AsyncEngine
    opened: FindOpened
    arrivals: Arrivals
    counters: Counters
    decoded: Decode | None = None
    """Decodes an id that a client received to the one in the log."""

    async def find(self, given: str, caller: Caller) -> history.Found:
        """Find the caller's newest request that has the id ``given``.

        Raises UnknownRequestError if there is none, TooOftenError if too many are waiting, and
        SQLAlchemyError if the database does not answer.
        """
        plain_id = given if self.decoded is None else await self.decoded(given)
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        with self.arrivals.expecting(plain_id) as arrived:
            found = await self._look(plain_id, caller)
            if found is None:
                with self._place(caller):
                    found = await self._await(plain_id, caller, arrived, deadline)
        found = found or await self._look(plain_id, caller)
        if found is None:
            raise UnknownRequestError(given)
        return found

    async def _await(
        self, given: str, caller: Caller, arrived: asyncio.Event, deadline: float
    ) -> history.Found | None:
        """Wait for the id, and look it up when it comes; None at the deadline."""
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
            with self.arrivals.waiting(caller.key_hash):
                yield
        except TooOftenError:
            self.counters.add("lookups_refused")
            raise

    async def newest_answered(self, session: str, caller: Caller) -> history.Found | None:
        """Find the caller's newest answered request of the session of that digest; None if the log
        has none."""
        if caller.is_admin:
            return await history.newest_answered(self.database, session)
        if caller.key_hash is None:
            return None
        return await history.newest_answered(self.database, session, caller.key_hash)

    async def _look(self, given: str, caller: Caller) -> history.Found | None:
        opened = self.opened(given, caller)
        if opened is not None:
            return _found(opened)
        if caller.is_admin:
            return await history.find(self.database, given)
        if caller.key_hash is None:
            return None
        return await history.find(self.database, given, caller.key_hash)


def _found(record: RequestRecord) -> history.Found:
    return history.Found(record.request_id, record.asker.key_hash, record.zoo, record.service_level)


# From a client's POST to a durable label.

DURABLE_SECONDS = 5.0
"""Seconds that a client waits for a database that does not answer."""
MOST_VERDICTS = 100
"""Verdicts on one call, after which only an administrator may add another: a client that changes
its mind more often is not judging."""


class Feedback(BaseModel):
    """The body of `POST /messplus/feedback`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    id: Annotated[str, Field(min_length=1, max_length=2048)] | None = Field(
        default=None,
        description="The `id` of the response, or its `x-litellm-call-id` header.",
    )
    conversation: Annotated[str, Field(min_length=1, max_length=2048)] | None = Field(
        default=None,
        description="In place of `id`: the session that the requests of a conversation named. The "
        "verdict is on its newest answer.",
    )
    satisfied: StrictBool | None = Field(default=None, description="Whether the answer satisfied.")
    score: Annotated[float, Field(ge=0.0, le=1.0, strict=True)] | None = Field(
        default=None, description="Satisfaction from 0 to 1, in place of `satisfied`."
    )
    comment: Annotated[str, Field(max_length=10_000)] | None = Field(
        default=None, description="The user's words."
    )
    call_id: Annotated[str, Field(min_length=1, max_length=80, pattern=STORABLE)] | None = Field(
        default=None,
        description="The judged call of an exploration; if left out, the one the user saw.",
    )

    @model_validator(mode="after")
    def _one_verdict(self) -> "Feedback":
        if (self.satisfied is None) == (self.score is None):
            raise ValueError("give exactly one of `satisfied` and `score`")
        return self

    @model_validator(mode="after")
    def _one_target(self) -> "Feedback":
        if (self.id is None) == (self.conversation is None):
            raise ValueError("give exactly one of `id` and `conversation`")
        if self.conversation is not None and self.call_id is not None:
            raise ValueError("give `call_id` with `id`: a conversation means its newest answer")
        return self

    @property
    def target(self) -> str:
        """The id that was given."""
        return str(self.id or self.conversation)

    @property
    def value(self) -> float:
        """Satisfaction from 0 to 1."""
        return float(bool(self.satisfied)) if self.score is None else self.score


class Outcome(StrEnum):
    """The results of a verdict."""

    COUNTED = "counted"
    UNCHANGED = "unchanged"
    BEYOND_INFLUENCE = "beyond_influence"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A durable verdict."""

    request_id: str
    call_id: str
    satisfaction: float
    outcome: Outcome


@dataclass(eq=False, repr=False)
class FeedbackDesk:
    """The desk that finds the request of a verdict, and writes the label. ``session_digest`` maps a
    session's id to its digest in the log.
    ``biases`` are the response biases of the zoos."""

    database: AsyncEngine
    journal: Journal
    finder: RequestFinder
    biases: Mapping[str, float]
    influence: KeyInfluence
    buckets: TokenBuckets
    counters: Counters
    session_digest: Callable[[str], str | None] = lambda named: None

    def __post_init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def accept(
        self, feedback: Feedback, caller: Caller, patience: float | None = DURABLE_SECONDS
    ) -> Accepted:
        """Write the verdict, and return when it is durable. It is withdrawn if writing has not
        begun after ``patience`` seconds.

        Raises UnknownRequestError, TooOftenError or TooManyVerdictsError; NotWrittenError,
        UnsettledError or SQLAlchemyError if the database does not take it.
        """
        self._admit(caller)
        try:
            return await self._accept(feedback, caller, patience)
        except RequestGoneError as error:  # pruned since it was found
            self.counters.add("feedback_unknown")
            raise UnknownRequestError(feedback.target) from error
        except UnknownRequestError:
            self.counters.add("feedback_unknown")
            raise

    async def _accept(self, feedback: Feedback, caller: Caller, patience: float | None) -> Accepted:
        if feedback.conversation is None:
            found = await self.finder.find(feedback.target, caller)
        else:
            found = await self._last_of(feedback.conversation, caller)
        call_id = feedback.call_id or served_call_id(found.request_id)
        await self._check_call(found.request_id, call_id)
        async with self._turn(call_id, patience):
            earlier = await call_verdicts(self.database, call_id, MOST_VERDICTS)
            accepted = Accepted(found.request_id, call_id, feedback.value, Outcome.COUNTED)
            if earlier.has(feedback.value, feedback.comment) and earlier.counting == feedback.value:
                return replace(accepted, outcome=Outcome.UNCHANGED)
            self._check_room(call_id, earlier, caller)
            if not await self._counts(found, caller, feedback.value, earlier):
                if earlier.has(feedback.value, feedback.comment):
                    return replace(accepted, outcome=Outcome.UNCHANGED)
                accepted = replace(accepted, outcome=Outcome.BEYOND_INFLUENCE)
            label = self._label(feedback, found, accepted)
            await self.journal.write_durably(label, patience)
        return accepted

    async def _last_of(self, conversation: str, caller: Caller) -> history.Found:
        """Find the newest answered request of a conversation, those that are not written yet
        included. Raises UnknownRequestError if there is none."""
        await asyncio.wait_for(self.journal.flush(), DURABLE_SECONDS)
        session = self.session_digest(conversation)
        found = session and await self.finder.newest_answered(session, caller)
        if not found:
            raise UnknownRequestError(conversation)
        return found

    async def look_up(self, given: str, caller: Caller) -> history.History:
        """Look up everything logged about the caller's request, the newest records included.

        Raises UnknownRequestError or TooOftenError.
        """
        request_id = (await self.finder.find(given, caller)).request_id
        await asyncio.wait_for(self.journal.flush(), DURABLE_SECONDS)
        found = await history.history(self.database, request_id)
        if found is None:  # dropped: the database refused it
            raise UnknownRequestError(given)
        return found

    def _admit(self, caller: Caller) -> None:
        wait = 0.0 if caller.is_admin else self.buckets.take(caller.key_hash)
        if wait > 0.0:
            self.counters.add("feedback_too_often")
            raise TooOftenError("too much feedback of this key", wait)

    async def _check_call(self, request_id: str, call_id: str) -> None:
        if call_id == served_call_id(request_id):
            return
        if not await history.has_ended(self.database, request_id, call_id):
            raise UnknownRequestError(f"{call_id}, as a call of request {request_id}")

    @asynccontextmanager
    async def _turn(self, call_id: str, patience: float | None) -> AsyncIterator[None]:
        """Let the verdicts on a call be written one after the other, so each sees the one before.

        Raises TimeoutError if the turn does not come within ``patience`` seconds.
        """
        turn = self._turns.setdefault(call_id, asyncio.Lock())
        async with asyncio.timeout(patience):
            await turn.acquire()
        try:
            yield
        finally:
            turn.release()

    def _check_room(self, call_id: str, earlier: CallVerdicts, caller: Caller) -> None:
        if earlier.given >= MOST_VERDICTS and not caller.is_admin:
            self.counters.add("verdicts_refused")
            raise TooManyVerdictsError(f"{call_id} has {earlier.given} verdicts already")

    async def _counts(
        self, found: history.Found, caller: Caller, value: float, earlier: CallVerdicts
    ) -> bool:
        """Tell whether the verdict counts, that is, gets a positive weight. An administrator's
        always does."""
        if caller.is_admin:
            return True
        is_of_today = (
            earlier.counted_at is not None and datetime.now(UTC) - earlier.counted_at < SPAN
        )
        return await self.influence.may_count(
            Cause(found.zoo, found.service_level, found.key_hash),
            self._content(found.zoo, value),
            self._content(found.zoo, earlier.counting)
            if is_of_today and earlier.counting is not None
            else None,
        )

    def _content(self, zoo: str, value: float) -> LabelContent:
        """Weigh a verdict by the number of users it stands for. The weight is written with the
        label, so that all readers of the log count it alike."""
        return LabelContent(value, label_weight(value, self.biases.get(zoo, 1.0)))

    def _label(self, feedback: Feedback, found: history.Found, accepted: Accepted) -> LabelRecord:
        counts = accepted.outcome is Outcome.COUNTED
        finding = Finding(
            call_id=accepted.call_id,
            request_id=accepted.request_id,
            kind=LabelKind.FEEDBACK,
            source=LabelKind.FEEDBACK,
            value=feedback.value,
            weight=self._content(found.zoo, feedback.value).weight if counts else 0.0,
            comment=feedback.comment,
        )
        return finding.label()


# Feedback in the metadata of the next request: in the same form, and as durable.

METADATA_KEY = "messplus_feedback"
UNDER_WAY = 1000
"""Verdicts that may be waiting to be written; more are refused and counted."""
CLOSE_SECONDS = 5.0
"""Seconds that a stop waits for them; the journal still writes those that it has received."""


class NextTurnFeedback:
    """The feedback in requests' metadata. A refused verdict is counted and logged, and its request
    is served. It waits for a database that does not answer, since no client would resend it."""

    def __init__(self, desk: FeedbackDesk, counters: Counters) -> None:
        self._desk = desk
        self._counters = counters
        self._writing = Tasks(UNDER_WAY)

    def take(self, metadata: Mapping[str, Any], key_hash: str | None) -> None:
        """Begin to write the verdict in a request's metadata, if any, and return at once."""
        given = metadata.get(METADATA_KEY)
        if given is None:
            return
        caller = Caller(key_hash, is_admin=False)
        if self._writing.start(self._accept(given, caller), "feedback") is None:
            self._refused("too many verdicts are waiting")

    async def close(self) -> None:
        """Wait until the verdicts in progress are written, for at most ``CLOSE_SECONDS``."""
        await self._writing.close(CLOSE_SECONDS)

    async def _accept(self, given: Mapping[str, Any], caller: Caller) -> None:
        with self._counters.tolerated("database_failures", "feedback in metadata was not written"):
            reason = await self._refusal(given, caller)
            if reason is not None:
                self._refused(reason)

    async def _refusal(self, given: Mapping[str, Any], caller: Caller) -> str | None:
        """Write the verdict, and return why it was refused, without quoting the client; None if it
        is durable."""
        try:
            await self._desk.accept(Feedback.model_validate(given), caller, patience=None)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            return f"{'.'.join(map(str, first['loc'])) or METADATA_KEY}: {first['msg']}"
        except MessplusError as error:
            return f"{type(error).__name__} {error}"
        return None

    def _refused(self, reason: str) -> None:
        self._counters.failure("feedback_refused", f"feedback in metadata was refused: {reason}")
