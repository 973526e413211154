"""Requests of the tiny zoo's server and the models that answer them."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from examples.tiny_zoo.prefixes import Prefixes
from examples.tiny_zoo.tool_calls import Tool, ToolCall

END_OF_THOUGHT = "|"
"""What a model that thinks first writes between its steps and its answer."""


class TextPart(BaseModel):
    """One part of a message's content; other kinds than text are refused."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One chat message."""

    role: str
    content: str | list[TextPart] | None = None
    tool_calls: list[ToolCall] | None = None

    def text(self) -> str:
        """Return the content as one string."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    def plain(self) -> dict[str, Any]:
        """Return the message as chat templates take it."""
        calls = [call.model_dump() for call in self.tool_calls or []]
        return {"role": self.role, "content": self.text(), "tool_calls": calls}


class StreamOptions(BaseModel):
    """The options of a stream: what it carries in addition to the text."""

    include_usage: bool = False


class Sampling(BaseModel):
    """The fields both kinds of request share; temperature 0 or none means greedy."""

    model: str
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = None
    n: Literal[1] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None

    def token_limit(self) -> int:
        """Return the most tokens to generate, 64 unless the request says otherwise."""
        return self.max_completion_tokens or self.max_tokens or 64


class ChatRequest(Sampling):
    """Body of POST /v1/chat/completions."""

    messages: list[Message]
    tools: list[Tool] | None = None
    reasoning_effort: str | None = None


class CompletionRequest(Sampling):
    """Body of POST /v1/completions."""

    prompt: str


class RequestError(Exception):
    """A request that cannot be served, with its HTTP status and OpenAI error code."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def bad_request(message: str) -> RequestError:
    """Build a RequestError for a request whose content does not make sense."""
    return RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", message)


class TinyModel:
    """A loaded model with its tokenizer."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.network.eval()
        names = signature(self.network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"  # before 5.24
        self.prefixes = Prefixes()

    def parameter_count(self) -> int:
        """Count the model's parameters."""
        count: int = self.network.num_parameters()
        return count

    def chat_prompt(
        self, messages: list[Message], tools: Sequence[Tool] = (), effort: str | None = None
    ) -> str:
        """Write the text that a chat is turned into, by a template that may read the reasoning
        effort, as in vLLM. Raises RequestError without a user message."""
        if not any(message.role == "user" for message in messages):
            raise bad_request("messages must hold a user message")
        prompt: str = self.tokenizer.apply_chat_template(
            [message.plain() for message in messages],
            tools=[tool.model_dump() for tool in tools] or None,
            reasoning_effort=effort,
            tokenize=False,
        )
        return prompt

    @torch.inference_mode()
    def next_scores(self, tokens: list[int], cache: DynamicCache) -> torch.Tensor:
        """Score what follows ``tokens``, which are added to ``cache``."""
        output = self.network(
            input_ids=torch.tensor([tokens]),
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_name: cache},
        )
        scores: torch.Tensor = output.logits[0, -1]
        return scores


class Generation:
    """One reply in the making; iterating yields its text token by token.

    ``finish_reason`` and ``usage()`` are final once the iteration has ended.  The token that ends
    a reply counts as generated, as it does in vLLM.
    """

    def __init__(self, model: TinyModel, prompt: str, request: Sampling) -> None:
        self.model, self.request = model, request
        self.prompt_tokens: list[int] = model.tokenizer(prompt)["input_ids"]
        room = model.network.config.max_position_embeddings - len(self.prompt_tokens)
        if room < 1 or not self.prompt_tokens:
            raise bad_request(f"the prompt has {len(self.prompt_tokens)} tokens; 1 to 511 fit")
        self.limit = min(request.token_limit(), room)
        self.completion_count = 0
        self.thought_count = 0
        self.cached_count = 0
        self.finish_reason = "length"

    def __iter__(self) -> Iterator[str]:
        source = torch.Generator()
        if self.request.seed is None:
            source.seed()
        else:
            source.manual_seed(self.request.seed)
        self.cached_count, known = self.model.prefixes.take(self.prompt_tokens)
        cache = known or DynamicCache(config=self.model.network.config)
        read, tokens = list(self.prompt_tokens), self.prompt_tokens[self.cached_count :]
        while self.completion_count < self.limit:
            token = self._choose(self.model.next_scores(tokens, cache), source)
            self.completion_count += 1
            if token == self.model.tokenizer.eos_token_id:
                self.finish_reason = "stop"
                break
            piece = self.model.tokenizer.decode([token], skip_special_tokens=True)
            if piece == END_OF_THOUGHT:
                self.thought_count = self.completion_count
            yield piece
            tokens = [token]
            if self.completion_count < self.limit:
                read.append(token)
        self.model.prefixes.keep(read, cache)

    def _choose(self, scores: torch.Tensor, source: torch.Generator) -> int:
        if not self.request.temperature:
            return int(scores.argmax())
        chances = torch.softmax(scores / self.request.temperature, dim=-1)
        return int(torch.multinomial(chances, 1, generator=source))

    def usage(self) -> dict[str, Any]:
        """Count the tokens in OpenAI's form; those of a thought are among the completion's."""
        prompt_count, thought = len(self.prompt_tokens), self.thought_count
        details = {"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}
        return {
            "prompt_tokens": prompt_count,
            "completion_tokens": self.completion_count,
            "total_tokens": prompt_count + self.completion_count,
            "prompt_tokens_details": {"cached_tokens": self.cached_count},
            **details,
        }
