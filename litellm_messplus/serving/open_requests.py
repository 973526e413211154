"""Requests that this process decided recently: for retries, headers, outcomes, early feedback."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.conversations.line import Place
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Choice, Question, Reading
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.prediction.answer import AnswerSurface
from litellm_messplus.records import CallRecord, RequestRecord, new_id
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.serving.deployments.gates import Needs
from litellm_messplus.serving.holding.holds import Pin
from litellm_messplus.serving.surfaces.surface import OWN_METADATA, PLAIN_METADATA
from litellm_messplus.store.answered import author

# The authors of answers that LiteLLM's response cache repeats.
#
# The cache stores an answer under the request, whichever candidate answered: the router's choice
# for a repeated request does not tell the author of the answer. The answer's id does.

REMEMBERED = 4096
"""Newest answers, and newest requests, kept in memory; older ones are looked up in the log."""
LOOKUP_SECONDS = 0.5
"""Seconds that a repeated answer waits for a database that does not answer."""


@dataclass(frozen=True, slots=True)
class Author:
    """The author of an answer. ``candidate`` is None outside the zoo; all are None if the author is
    unknown."""

    candidate: str | None
    deployment_id: str | None
    model: str | None

    @property
    def name(self) -> str | None:
        """The author as shown in the headers: the candidate, or else LiteLLM's id of the
        deployment."""
        return self.candidate or self.deployment_id


UNKNOWN = Author(None, None, None)


class Authors:
    """The authors of this process's newest answers, and of all answers in the log."""

    def __init__(self, database: AsyncEngine, remembered: int = REMEMBERED) -> None:
        self._database = database
        self._authors: Bounded[tuple[str, str], Author] = Bounded(remembered)

    def wrote(self, zoo: str, call: CallRecord) -> None:
        """Remember a call that a model answered; ignore an answer from the cache."""
        if call.is_cache_hit or call.status is not CallStatus.SUCCESS or call.response_id is None:
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


# A request whose answer may be replaced by another model's before the client gets it.


@dataclass(frozen=True, slots=True)
class First:
    """Context of reading a first answer: the question and the choice of a request, and the
    ``arguments`` of a second call. ``until`` is the loop time at which the client's time is up,
    None without a limit."""

    engine: Engine
    question: Question
    choice: Choice
    arguments: Mapping[str, Any]
    until: float | None


@dataclass(frozen=True, slots=True)
class Second:
    """The answer that the client gets in place of the first: its author. ``log`` records its call,
    after that of the first; ``judged`` is set if a label is to be found for the first."""

    author: Author
    log: Callable[[], object]
    judged: JudgedRequest | None = None


METADATA_KEY = "messplus"


@dataclass(slots=True)
class OpenRequest:
    """An open request. ``tried`` are the ids of the deployments that failed it, and ``spared`` is
    the one whose newest failure was caused by what we added to the call; ``judged`` is set
    if a source judges its answers, ``author`` if LiteLLM's cache answered and the author is known.
    ``needs`` is what the gates require, None in a zoo without gates; ``barred`` are the ids of the
    deployments that cannot take it, and ``left_out`` the candidates that a rule or a limit leaves
    out; ``attempts`` is the number shown in LiteLLM's logs. ``place``
    is its place in a conversation, None if those are not held, and ``pin`` what holds it.
    ``unlogged`` logs a request whose shadow decision is pending, None for any other. ``before`` is
    what serves it, None if the router chooses. ``first`` is set until it is known whether its
    answer is replaced, ``reading`` if that was read, and ``second`` if it was replaced; ``waiting``
    records its end once that is known. ``looks`` is the surface of its answer, if that was read
    before the log event; it ``is_scored`` if a score of one's own was asked for then. ``secret`` is
    never shown to a client."""

    record: RequestRecord
    ranking: tuple[str, ...]
    judged: JudgedRequest | None = None
    needs: Needs | None = None
    barred: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    tried: set[str] = field(default_factory=set)
    spared: str | None = None
    author: Author | None = None
    response_id: str | None = None
    unlogged: Callable[[], None] | None = None
    before: str | None = None
    attempts: int = 0
    place: Place | None = None
    pin: Pin | None = None
    first: First | None = None
    reading: Reading | None = None
    looks: AnswerSurface | None = None
    is_scored: bool = False
    second: Second | None = None
    waiting: Callable[[], None] | None = None
    secret: str = field(default_factory=new_id)

    def ensure_logged(self) -> None:
        """Log the request if it is not logged yet; call this before logging anything about it."""
        if self.unlogged is not None:
            self.unlogged()

    def settle(self) -> None:
        """Note that it is known which answer the client gets."""
        self.first = None
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting()

    def release_judged(self) -> JudgedRequest | None:
        """Return ``judged`` and drop it, since an open request stays in memory long after."""
        judged, self.judged = self.judged, None
        return judged


class OpenRequests:
    """The open requests of this process, a bounded number: forgotten ones are in the log."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._by_id: Bounded[str, OpenRequest] = Bounded(remembered)

    def add(self, opened: OpenRequest, metadata: MutableMapping[str, Any]) -> None:
        """Remember a request, and mark LiteLLM's metadata so that every later hook finds it.

        The prompt's text is not kept: thousands of them would fill the memory.
        """
        opened.record = without_words(opened.record)
        metadata[METADATA_KEY] = {
            "request_id": opened.record.request_id,
            "secret": opened.secret,
        }
        self._by_id[opened.record.request_id] = opened

    def get(self, metadata: object, litellm_call_id: str | None) -> OpenRequest | None:
        """Find the request that the metadata of a hook belongs to.

        A client can write into the metadata and choose the id of its call: by copying those of an
        earlier request it would be served by that decision, and not be logged. So the mark holds a
        secret that it cannot know.
        """
        mark = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
        if not isinstance(mark, dict):
            return None
        request_id = mark.get("request_id")
        found = self._by_id.get(request_id) if isinstance(request_id, str) else None
        if found is None or found.record.asker.litellm_call_id != litellm_call_id:
            return None
        return found if mark.get("secret") == found.secret else None

    def of_hook(self, data: Mapping[str, Any], call: Mapping[str, Any]) -> OpenRequest | None:
        """Find the request of a hook, whose metadata are in ``data`` and whose call id is in
        ``call``; what a client wrote into metadata has no valid mark."""
        call_id = call.get("litellm_call_id")
        for name in (PLAIN_METADATA, OWN_METADATA):
            if name in data and (opened := self.get(data[name], call_id)) is not None:
                return opened
        return None

    def find(self, given: str) -> Iterator[OpenRequest]:
        """Yield those whose own id, LiteLLM call id or response id is ``given``, newest first."""
        direct = self._by_id.get(given)
        if direct is not None:
            yield direct
        for opened in reversed(self._by_id.values()):
            if given in (opened.record.asker.litellm_call_id, opened.response_id):
                yield opened
