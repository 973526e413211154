"""Requests that this worker had decided recently: for retries, headers and outcomes."""

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from litellm_messplus.brain.messages import Author, Order
from litellm_messplus.core.answer import AnswerReading, AnswerSurface
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.serving import litellm_seam
from litellm_messplus.serving.deployments.deployment import Deployment, deployment_id
from litellm_messplus.serving.deployments.gates import Needs
from litellm_messplus.serving.surfaces.surface import OWN_METADATA, PLAIN_METADATA, SURFACES

REMEMBERED = 4096
"""Newest requests kept in memory, of those that have ended."""


# A request whose answer may be replaced by another model's before the client gets it.


@dataclass(frozen=True, slots=True)
class First:
    """Context of reading a first answer: the ``arguments`` of a second
    call. ``until`` is the loop time at which the client's time is up, None without a limit."""

    arguments: Mapping[str, Any]
    until: float | None


@dataclass(frozen=True, slots=True)
class Second:
    """The answer that the client gets in place of the first, ``replaced``: its author. ``log``
    records its call, after that of the first."""

    author: Author
    replaced: object
    log: Callable[[], object]


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
    """An open request: what was ordered, what was tried, and what is known of its end."""

    order: Order
    """What the brain ordered last."""
    needs: Needs | None = None
    """What the gates require; None in a zoo without gates."""
    barred: frozenset[str] = frozenset()
    """The ids of the deployments that cannot take it."""
    before: str | None = None
    """What serves it; None if the router chooses."""
    scored: JudgedRequest | None = None
    """The request as the score of its zoo sees it, if the zoo has one."""
    tried: set[str] = field(default_factory=set)
    """The ids of the deployments that failed it."""
    passed_over: set[str] = field(default_factory=set)
    """The ids of those that LiteLLM could not call."""
    offered: frozenset[str] = frozenset()
    """The ids of those that the hook returned last, at the ``attempt`` of that number."""
    attempt: int = 0
    offered_at: float = field(default_factory=time.monotonic)
    attempts: int = 0
    """The number of attempts shown on LiteLLM's spans."""
    author: Author | None = None
    """Set if LiteLLM's cache answered, and the author is known."""
    response_id: str | None = None
    first: First | None = None
    """Set if its answer may be replaced."""
    reading: AnswerReading | None = None
    """Set if its answer was read."""
    looks: AnswerSurface | None = None
    """The surface of its answer with its score, if that was read."""
    second: Second | None = None
    """Set if its answer was replaced."""
    has_client: bool = False
    """Whether LiteLLM's proxy hands the answer to a client, at once or as a stream."""
    is_streaming: bool = False
    got: Handed | None = None
    """What was known of that at the beginning of a stream."""
    handed: Handed | None = None
    """What was known of that at the end."""
    report: Report | None = None
    """LiteLLM's report of the end."""
    timeout: float | None = None
    """The request's own, in seconds."""
    call: object = None
    """LiteLLM's object of it, until it ends."""
    secret: str = field(default_factory=new_id)
    """Never shown to a client."""

    @property
    def record(self) -> RequestRecord:
        """The request as it is logged, without words of a user."""
        return self.order.record

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

    def forget_answer(self) -> None:
        """Drop what is kept until the end, since an open request stays in memory long after."""
        self.got = self.handed = self.report = self.second = self.scored = None


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
        """Remember a request, and mark LiteLLM's metadata so that every later hook finds it."""
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
