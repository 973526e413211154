"""What passes between the hands and the brain: a request as it is read, the order that comes back,
and how its calls ended. All of it is plain data: what either of them remembers of a request goes by
its id."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.hold import Signs
from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.labels.source import Answer, JudgedRequest
from litellm_messplus.records import Asker, CallRecord, Names, RequestRecord


class Replica(NamedTuple):
    """A healthy deployment: LiteLLM's id of it, its candidate, and whether a vLLM server serves
    it."""

    identity: str
    candidate: str
    is_vllm: bool


@dataclass(frozen=True, slots=True)
class Admission:
    """What the candidates make of a request: the outcome of the gates, which the hands check."""

    barred: frozenset[str] = frozenset()
    """The ids of the deployments that are not tried."""
    eligible: frozenset[str] | None = None
    """The candidates that have another one; None if all have."""
    why: tuple[str, ...] = ()
    """The needs of the request that decided."""
    prompt_tokens: Mapping[str, float] = field(default_factory=dict)
    """The tokens of the prompt by candidate, where a tokenizer counted them."""


OPEN = Admission()
"""Admission of every deployment."""


NAME_KEY = "messplus_service_level"
"""The key of a level's name in the metadata of a key, of a team, and of a request."""
HEADER = "x-messplus-service-level"
"""The header of a request that names a level, which comes before its metadata."""
MAY_KEY = "messplus_callers_may"
"""The key in the metadata of a key or team, in place of the zoo's `callers_may`."""


@dataclass(frozen=True, slots=True)
class WantedLevel:
    """What decides the level of a request, as far as it is stated."""

    stated: object = None
    """The level that the operator states of the key, else of its team."""
    sent: object = None
    """The level that the client asks for."""
    may: tuple[str, ...] | None = None
    """The levels that the key may choose, in place of the zoo's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as the zoo's decision, its log and its labels need it."""

    request_id: str
    zoo: str
    asker: Asker
    conversation: Conversation
    replicas: tuple[Replica, ...]
    """The healthy deployments, none if LiteLLM has none left."""
    level: WantedLevel
    names: Names | None = None
    """Readable names of the sender; None if the operator keeps none."""
    is_switched_off: bool = False
    """Whether the client switches routing off for this request."""
    is_alone: bool = False
    """Whether a second call could repeat a side effect."""
    may_go_on: bool = False
    """Whether another answer may take the place of the first before the client sees any."""
    most_completion_tokens: float = math.inf
    signs: Signs = field(default_factory=Signs)
    """What ties the prompt to the model that answered before."""
    session: str | None = None
    """The session that the client named."""
    ids: tuple[str, ...] = ()
    """The ids of the newest tool calls in the prompt, in their order."""
    continues: str | None = None
    """The id of the answer that it continues without repeating the conversation."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The arguments that constrain the answer, for the sources of labels."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The client's metadata, for the sources of labels."""

    @property
    def key_hash(self) -> str | None:
        return self.asker.key_hash

    @property
    def candidates(self) -> frozenset[str]:
        """The candidates that have a healthy deployment."""
        return frozenset([each.candidate for each in self.replicas])


# What comes back: an order, which names what is called, and what is remembered until it ends.


@dataclass(frozen=True, slots=True)
class Pin:
    """The deployment that is tried first, if known, and its candidate. It ``is_bound`` if no other
    candidate could read the prompt, and ``is_alone`` if no other deployment has the state that the
    request continues."""

    candidate: str
    deployment: str | None
    is_bound: bool = False
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What the hands do with a request, and remember until it ends."""

    record: RequestRecord
    """As it is logged, without words of a user."""
    ranking: tuple[str, ...] = ()
    """The candidates in the order in which to try them."""
    explored: tuple[str, ...] = ()
    """The candidates that are called in addition, unseen."""
    pin: Pin | None = None
    """What holds it."""
    is_placed: bool = False
    """Whether its conversation goes on from its answer."""
    is_judged: bool = False
    """Whether sources of labels see its answers."""
    is_read: bool = False
    """Whether its answer is read, to keep or replace it."""
    is_due: bool = False
    """Whether it is served as before, and is to be decided in shadow too."""


# How a call ended.


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


class Continued(NamedTuple):
    """An answer as the conversation goes on from it: its text with its tool calls as the next
    prompt will hold them, the calls' ids, and what it used; None if that is not reported."""

    text: str
    ids: tuple[str, ...]
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call of a request, seen by the user or not."""

    call: CallRecord
    is_shown: bool = False
    """Whether the sources of labels see it."""
    answer: Answer | None = None
    """The answer that they see; None if the call failed."""
    continued: Continued | None = None
    """What the conversation goes on from; None if it does not."""
    record: RequestRecord | None = None
    """The request, if another brain may have ordered it and not written it."""


# What a worker shows and is told beside its requests.


@dataclass(frozen=True, slots=True)
class ZooNow:
    """What has become of a configured zoo: the arguments of `Zoo.live`."""

    prices: Mapping[str, Price]
    absent: frozenset[str]
    anchor: str | None
    is_holding: bool
    """Whether its conversations are held."""
    is_routed: bool
    """Whether all its requests are routed, but for those whose client switches that off."""
    safe: str
    """What serves while the brain is away: what served before, else the largest."""


# A client's request to a route under `/messplus`, which a worker forwards, and the answer.


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a route. An administrator of the proxy may see and label every request."""

    key_hash: str | None
    is_admin: bool

    def owns(self, key_hash: str | None) -> bool:
        """Tell whether a request made with that key is the caller's."""
        return self.is_admin or (key_hash is not None and key_hash == self.key_hash)


class Asking(NamedTuple):
    """A request over HTTP."""

    method: str
    scheme: str
    path: str
    root_path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Shown(NamedTuple):
    """An answer over HTTP."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def judged_request(record: RequestRecord, asked: Asked) -> JudgedRequest:
    """Build a request as the sources of labels, and the score of its zoo, see it."""
    return JudgedRequest(
        request_id=record.request_id,
        zoo=record.zoo,
        service_level=record.service_level,
        key_hash=record.asker.key_hash,
        conversation=asked.conversation,
        parameters=asked.parameters,
        metadata=asked.metadata,
        label_probability=record.label_probability,
        is_limited=math.isfinite(asked.most_completion_tokens),
    )
