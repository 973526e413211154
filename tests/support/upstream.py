"""A scripted OpenAI-compatible upstream on a real port, in a thread of the test process."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.support.ports import free_port
from tests.support.serving import Serving

CUT_SECONDS = 0.05
"""After the first words: the client has them before the connection breaks."""


@dataclass
class Reply:
    """What one model answers."""

    text: str = "fine"
    prompt_tokens: int = 10
    completion_tokens: int = 5
    status: int = 200
    delay_seconds: float = 0.0
    is_due: Callable[[], bool] = lambda: True
    """Asked again and again until it holds; then the answer is given."""
    with_usage: bool = True
    piece_seconds: float = 0.0
    """Between two pieces of a streamed answer."""
    is_cut: bool = False
    """Whether the connection breaks in the middle of a stream."""
    tool_call: str | None = None
    """The id of a call of the tool `look` that a whole answer asks for."""
    cached_tokens: int = 0
    log_probabilities: tuple[float, ...] = ()
    """Of the tokens of a whole chat answer, for a request that asks for them."""
    failure: str = "scripted failure"
    raw: tuple[str, str] | None = None
    """The media type and the whole of what is sent in place of an answer."""


Script = Callable[[str, dict[str, Any]], Reply]


@dataclass
class Upstream:
    """``requests`` holds the bodies received; ``script`` maps (model, body) to a reply."""

    script: Script = lambda model, body: Reply()
    requests: list[dict[str, Any]] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def models_called(self) -> list[str]:
        return [str(body["model"]) for body in self.requests]

    def start(self) -> None:
        app = FastAPI()
        app.post("/v1/chat/completions")(self._chat)
        app.post("/v1/completions")(self._completion)
        app.post("/v1/responses")(self._response)
        self._serving = Serving(app, self.port)

    def stop(self) -> None:
        self._serving.stop()

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, "chat.completion", _chat_choice)

    async def _completion(self, request: Request) -> Response:
        return await self._answer(request, "text_completion", _text_choice)

    async def _response(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        reply = self.script(str(body["model"]), body)
        if reply.raw is not None:
            return Response(reply.raw[1], media_type=reply.raw[0])
        if reply.status != 200:
            return _failure(reply.status)
        whole = _response_object(body, reply)
        if body.get("stream"):
            return StreamingResponse(_response_events(whole), media_type="text/event-stream")
        return JSONResponse(whole)

    async def _answer(
        self, request: Request, kind: str, choice: Callable[[Reply], dict[str, Any]]
    ) -> Response:
        body = await request.json()
        self.requests.append(body)
        reply = self.script(str(body["model"]), body)
        await asyncio.sleep(reply.delay_seconds)
        while not reply.is_due():  # noqa: ASYNC110 - nothing here knows when
            await asyncio.sleep(0.01)
        if reply.raw is not None:
            return Response(reply.raw[1], media_type=reply.raw[0])
        if reply.status != 200:
            return _failure(reply.status, reply.failure)
        head = {
            "id": f"cmpl-{len(self.requests)}-{time.time_ns()}",
            "created": int(time.time()),
            "model": body["model"],
        }
        usage: dict[str, Any] = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        }
        if body.get("stream"):
            chunks = _chunks({**head, "object": f"{kind}.chunk"}, reply, usage)
            return StreamingResponse(chunks, media_type="text/event-stream")
        answer = {**head, "object": kind, "choices": [{**choice(reply), **_logprobs(body, reply)}]}
        return JSONResponse({**answer, "usage": usage} if reply.with_usage else answer)


def _failure(status: int, message: str = "scripted failure") -> Response:
    error = {"error": {"message": message, "type": "server_error"}}
    return JSONResponse(error, status_code=status)


def _response_object(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {
        "id": f"resp_{time.time_ns()}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body["model"],
        "output": [{**message, "content": content}, *_function_calls(reply)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": reply.prompt_tokens,
            "output_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            "input_tokens_details": {"cached_tokens": reply.cached_tokens},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(whole: dict[str, Any]) -> Iterator[str]:
    """The events that make up a streamed response, its text in one piece."""
    message = whole["output"][0]
    (part,) = message["content"]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 0, "item_id": message["id"], "content_index": 0}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": {**message, "content": []}}),
        ("response.content_part.added", {**at, "part": {**part, "text": ""}}),
        ("response.output_text.delta", {**at, "delta": part["text"]}),
        ("response.output_text.done", {**at, "text": part["text"]}),
        ("response.content_part.done", {**at, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": message}),
        ("response.completed", {"response": whole}),
    ]
    for number, (kind, event) in enumerate(events):
        data = json.dumps({"type": kind, "sequence_number": number, **event})
        yield f"event: {kind}\ndata: {data}\n\n"


def _look(reply: Reply) -> dict[str, Any]:
    return {"name": "look", "arguments": json.dumps({"at": reply.tool_call})}


def _function_calls(reply: Reply) -> list[dict[str, Any]]:
    if reply.tool_call is None:
        return []
    identity = {"id": f"fc_{reply.tool_call}", "call_id": reply.tool_call}
    return [{"type": "function_call", "status": "completed", **identity, **_look(reply)}]


def _chat_choice(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.tool_call is None:
        return {"index": 0, "message": message, "finish_reason": "stop"}
    call = {"id": reply.tool_call, "type": "function", "function": _look(reply)}
    message["tool_calls"] = [call]
    return {"index": 0, "message": message, "finish_reason": "tool_calls"}


def _logprobs(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    if not body.get("logprobs") or not reply.log_probabilities:
        return {}
    token: dict[str, Any] = {"token": "x", "bytes": None, "top_logprobs": []}
    return {"logprobs": {"content": [{**token, "logprob": p} for p in reply.log_probabilities]}}


def _text_choice(reply: Reply) -> dict[str, Any]:
    return {"index": 0, "text": reply.text, "finish_reason": "stop"}


def _chunks(head: dict[str, Any], reply: Reply, usage: dict[str, Any]) -> Iterator[str]:
    for character in reply.text:
        yield _event({**head, "choices": [_piece(head, character, None)]})
        time.sleep(reply.piece_seconds)
        if reply.is_cut:
            time.sleep(CUT_SECONDS)
            raise ConnectionResetError("scripted: the connection breaks")
    yield _event({**head, "choices": [_piece(head, "", "stop")]})
    if reply.with_usage:
        yield _event({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _piece(head: dict[str, Any], text: str, finish_reason: str | None) -> dict[str, Any]:
    delta = {"role": "assistant", "content": text}
    said = {"text": text} if head["object"] == "text_completion.chunk" else {"delta": delta}
    return {"index": 0, "finish_reason": finish_reason, **said}


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
