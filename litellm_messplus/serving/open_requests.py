"""Requests that this process decided recently: for retries, headers, outcomes, early feedback."""

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from litellm_messplus.brain.authors import Author
from litellm_messplus.brain.feedback import Caller
from litellm_messplus.brain.messages import Awaited, Pin
from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.engine import Reading
from litellm_messplus.core.line import Place
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.serving import litellm_seam
from litellm_messplus.serving.deployments.deployment import Deployment, deployment_id
from litellm_messplus.serving.deployments.gates import Needs
from litellm_messplus.serving.surfaces.surface import OWN_METADATA, PLAIN_METADATA, SURFACES

REMEMBERED = 4096
"""Newest requests kept in memory; older ones are looked up in the log."""


# A request whose answer may be replaced by another model's before the client gets it.


@dataclass(frozen=True, slots=True)
class First:
    """Context of reading a first answer: the decided request, and the ``arguments`` of a second
    call. ``until`` is the loop time at which the client's time is up, None without a limit."""

    awaited: Awaited
    arguments: Mapping[str, Any]
    until: float | None


@dataclass(frozen=True, slots=True)
class Second:
    """The answer that the client gets in place of the first, ``replaced``: its author. ``log``
    records its call, after that of the first; ``judged`` is set if a label is to be found for the
    first."""

    author: Author
    replaced: object
    log: Callable[[], object]
    judged: JudgedRequest | None = None


# How a request ends: by what the client got, and what LiteLLM reports of it, in any order.


@dataclass(slots=True)
class Handed:
    """What the client got of its ``author``: a whole ``answer``, or the ``chunks`` of a stream,
    which ``is_repeated`` if LiteLLM's cache had it. ``at`` is when, ``model_id`` LiteLLM's of
    the deployment.
    ``failure`` and ``error`` tell why it is no answer, or not all of one."""

    author: Author
    at: float
    model_id: str | None = None
    answer: object = None
    chunks: Sequence[object] = ()
    is_repeated: bool = False
    failure: Failure | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class Report:
    """LiteLLM's log event of an answer: its own details of the call, and the answer, which may be
    redacted, or one that it discarded later."""

    details: Mapping[str, Any]
    answer: object

    @property
    def payload(self) -> Mapping[str, Any]:
        """LiteLLM's standard logging object; empty where it could not build one."""
        return self.details.get("standard_logging_object") or {}


METADATA_KEY = "messplus"


@dataclass(slots=True)
class OpenRequest:
    """An open request. ``tried`` are the ids of the deployments that failed it, ``passed_over``
    those that LiteLLM could not call, and ``offered`` those that the hook returned last, at the
    ``attempt`` of that number; ``judged`` is set if a source judges its answers, ``author`` if
    LiteLLM's cache answered and the author is known. ``needs`` is what the gates require, None in a
    zoo without gates; ``barred`` are the ids of the deployments that cannot take it; ``attempts``
    is the number shown on LiteLLM's spans. ``place`` is its place in a conversation, None if those
    are not held, and ``pin`` what holds it.
    ``unlogged`` logs a request whose shadow decision is pending, None for any other. ``before`` is
    what serves it, None if the router chooses. ``first`` is set if its answer may be replaced,
    ``reading`` if that was read, and ``second`` if it was replaced. ``looks`` is the surface of its
    answer with its score, if that was read. ``has_client`` if LiteLLM's proxy hands the answer to a
    client, at once or, if it ``is_streaming``, by and by: ``got`` is what was known of that at the
    beginning, ``handed`` at the end, and ``report`` LiteLLM's. ``timeout`` is the request's own,
    ``offered_at`` when it was last tried. ``call`` is LiteLLM's object of it until it ends.
    ``secret`` is never shown to a client."""

    record: RequestRecord
    ranking: tuple[str, ...]
    judged: JudgedRequest | None = None
    needs: Needs | None = None
    barred: frozenset[str] = frozenset()
    tried: set[str] = field(default_factory=set)
    passed_over: set[str] = field(default_factory=set)
    offered: frozenset[str] = frozenset()
    attempt: int = 0
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
    second: Second | None = None
    has_client: bool = False
    is_streaming: bool = False
    got: Handed | None = None
    handed: Handed | None = None
    report: Report | None = None
    timeout: float | None = None
    offered_at: float = field(default_factory=time.monotonic)
    call: object = None
    secret: str = field(default_factory=new_id)

    @property
    def failed(self) -> Set[str]:
        """The ids of the deployments that another attempt leaves out."""
        return self.tried | self.passed_over

    def attempted(self, kwargs: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        """Note what became of the attempt before this one, from LiteLLM's arguments of this: which
        deployments have failed, or that none of the ``offered`` was called, each being at its
        limit of rate, say."""
        failed, number = litellm_seam.failed_attempts(kwargs, metadata)
        self.tried |= failed
        if number != self.attempt and self.offered.isdisjoint(failed):
            self.passed_over |= self.offered
        self.attempt = number

    def offer(self, deployments: Sequence[Deployment]) -> Sequence[Deployment]:
        """Note the deployments that the hook returns, and return them."""
        self.offered, self.offered_at = frozenset(map(deployment_id, deployments)), time.monotonic()
        return deployments

    def ensure_logged(self) -> None:
        """Log the request if it is not logged yet; call this before logging anything about it."""
        if self.unlogged is not None:
            self.unlogged()

    def forget_answer(self) -> None:
        """Drop what is kept until the end, since an open request stays in memory long after."""
        self.got = self.handed = self.report = self.second = self.judged = None

    def release_judged(self) -> JudgedRequest | None:
        """Return ``judged``, once."""
        judged, self.judged = self.judged, None
        return judged


class OpenRequests:
    """The requests of this process, a bounded number: forgotten ones are in the log. Those that
    have not ended are kept longer than the others."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._by_id: Bounded[str, OpenRequest] = Bounded(remembered)
        self._by_call: WeakKeyDictionary[Any, OpenRequest] = WeakKeyDictionary()
        self._unended: dict[str, OpenRequest] = {}
        self.most = remembered

    def unended(self) -> list[OpenRequest]:
        """List those that have not ended, oldest first."""
        return list(self._unended.values())

    def end(self, opened: OpenRequest) -> bool:
        """Note that a request ends; tell whether it had not ended before."""
        opened.call = None
        return self._unended.pop(opened.record.request_id, None) is not None

    def is_open(self, opened: OpenRequest) -> bool:
        """Tell whether a request has not ended."""
        return opened.record.request_id in self._unended

    def add(
        self, opened: OpenRequest, metadata: MutableMapping[str, Any], call: object = None
    ) -> None:
        """Remember a request, and mark LiteLLM's metadata so that every later hook finds it.

        The prompt's text is not kept: thousands of them would fill the memory.
        """
        opened.record = without_words(opened.record)
        metadata[METADATA_KEY] = {
            "request_id": opened.record.request_id,
            "secret": opened.secret,
        }
        self._by_id[opened.record.request_id] = opened
        self._unended[opened.record.request_id] = opened
        if call is not None:
            self._by_call[call], opened.call = opened, call

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
        if not isinstance(request_id, str):
            return None
        found = self._by_id.get(request_id) or self._unended.get(request_id)
        if found is None or mark.get("secret") != found.secret:
            return None
        asker = found.record.asker
        is_of_call = asker.litellm_call_id == litellm_call_id
        # LiteLLM translates such a request into a chat, which has a call id of its own.
        return found if is_of_call or SURFACES[asker.call_type].as_chat else None

    def of_hook(self, data: Mapping[str, Any], call: Mapping[str, Any]) -> OpenRequest | None:
        """Find the request of a hook, whose metadata are in ``data`` and whose call id is in
        ``call``; what a client wrote into metadata has no valid mark."""
        call_id = call.get("litellm_call_id")
        for name in (PLAIN_METADATA, OWN_METADATA):
            if (opened := self.get(data.get(name), call_id)) is not None:
                return opened
        # The metadata that LiteLLM shows after a fallback into a zoo are those of the first group.
        logging = call.get(litellm_seam.LOGGING)
        return None if logging is None else self._by_call.get(logging)

    def of_failure(self, data: Mapping[str, Any], key_hash: str | None) -> OpenRequest | None:
        """Find the request of a key whose client gets an error; after a fallback into a zoo,
        LiteLLM leaves nothing of it in ``data`` but the call's id, which the client may choose."""
        wanted = data.get("litellm_call_id"), key_hash
        askers = ((each, each.record.asker) for each in self.unended())
        fallen = (e for e, asker in askers if (asker.litellm_call_id, asker.key_hash) == wanted)
        return self.of_hook(data, data) or next(fallen, None)

    def of_caller(self, given: str, caller: Caller) -> RequestRecord | None:
        """Return the record of the caller's newest request that has the id ``given``, and see to it
        that it is logged; None if there is none."""
        for opened in self.find(given):
            if caller.owns(opened.record.asker.key_hash):
                opened.ensure_logged()
                return opened.record
        return None

    def find(self, given: str) -> Iterator[OpenRequest]:
        """Yield those whose own id, LiteLLM call id or response id is ``given``, newest first."""
        direct = self._by_id.get(given)
        if direct is not None:
            yield direct
        for opened in reversed(self._by_id.values()):
            if given in (opened.record.asker.litellm_call_id, opened.response_id):
                yield opened
