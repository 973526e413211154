"""The surfaces: LiteLLM's APIs that are routed, each described by one record.

To route another API, add its record to `SURFACES`, and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from litellm_messplus.core import answer
from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.labels.source import Answer, Finish
from litellm_messplus.serving.surfaces import answers, gemini

PLAIN_METADATA, OWN_METADATA = "metadata", "litellm_metadata"
MESSAGES = "messages"
SERVERS_OWN = ("mcp_servers", "web_search_options", "container", "conversation")
"""Arguments by which a provider searches, calls other servers, runs code, or stores the turn."""
ASKING = frozenset(
    {*SERVERS_OWN, "prompt", "extra_body", "n", "allowed_model_region", "response_format"}
    | {"thinking", "reasoning", "reasoning_effort", "parallel_tool_calls"}
)
"""Arguments of any surface that ask for more than an answer to the prompt."""


@dataclass(frozen=True)
class Surface:
    """An API of LiteLLM, by its ``call_type``.

    ``router_method`` of LiteLLM's router calls it. The arguments ``prompt`` and ``system`` hold the
    prompt, ``tools`` what may be called, ``choices`` what must be, ``formats`` the answer's format,
    ``limits`` its length, ``metadata`` LiteLLM's own metadata, and ``continues`` the earlier answer
    whose deployment must serve. A request of an API with ``as_chat`` is read as the chat completion
    that this returns, and repeated as one. ``text`` reads the text of an answer, ``read_answer``
    all that its judges may see, and ``used`` its reported usage.
    """

    call_type: str
    router_method: str
    prompt: str = MESSAGES
    system: str | None = None
    tools: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    limits: tuple[str, ...] = ("max_tokens",)
    metadata: str = PLAIN_METADATA
    continues: str | None = None
    as_chat: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    text: Callable[[object], str] = answers.text
    read_answer: Callable[[object], Answer] = answers.read_answer
    used: Callable[[object], object] = answers.usage

    @cached_property
    def asking(self) -> frozenset[str]:
        """The arguments that ask for more than an answer to the prompt."""
        more = (self.system, self.continues)
        return ASKING.union(self.parameters, filter(None, more)) - {self.prompt}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The arguments that constrain the answer."""
        return (*self.tools, *self.choices, *self.formats)

    def looks(self, response: object) -> AnswerSurface:
        """Read the numbers of an answer. A refusal in a field of its own is its text."""
        read_answer = self.read_answer(response)
        was_cut = read_answer.finish is Finish.LENGTH
        text = read_answer.text or read_answer.refusal or ""
        return answer.read_answer(answer.Answer(text, len(read_answer.tool_calls), was_cut))

    @property
    def has_client_metadata(self) -> bool:
        """Whether `metadata` is the client's and goes upstream; LiteLLM's is then separate."""
        return self.metadata != PLAIN_METADATA


CHAT_COMPLETIONS = Surface(
    "acompletion",
    "acompletion",
    tools=("tools", "functions"),
    choices=("tool_choice", "function_call"),
    formats=("response_format",),
    limits=("max_tokens", "max_completion_tokens"),
)
TEXT_COMPLETIONS = Surface(
    "atext_completion", "atext_completion", prompt="prompt", formats=("response_format",)
)
ANTHROPIC_MESSAGES = Surface(
    "anthropic_messages",
    "aanthropic_messages",
    system="system",
    tools=("tools",),
    choices=("tool_choice",),
    formats=("output_format", "output_config"),
    metadata=OWN_METADATA,
)
RESPONSES = Surface(
    "aresponses",
    "aresponses",
    prompt="input",
    system="instructions",
    tools=("tools",),
    choices=("tool_choice",),
    formats=("text",),
    limits=("max_output_tokens",),
    metadata=OWN_METADATA,
    continues="previous_response_id",
)
GEMINI = replace(CHAT_COMPLETIONS, call_type="agenerate_content", as_chat=gemini.as_chat)
GEMINI_STREAM = replace(GEMINI, call_type="agenerate_content_stream")

SURFACES: dict[str, Surface] = {
    surface.call_type: surface
    for surface in (
        CHAT_COMPLETIONS,
        TEXT_COMPLETIONS,
        ANTHROPIC_MESSAGES,
        RESPONSES,
        GEMINI,
        GEMINI_STREAM,
    )
}
"""Surfaces by LiteLLM's call type."""
