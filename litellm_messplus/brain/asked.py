"""A request as the hands read it, before any decision: plain data of one request."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litellm_messplus.conversations.rule import Signs
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.records import Asker, Names


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
