"""A small OpenAI-compatible server for the tiny zoo.

``python -m examples.tiny_zoo.server --port 8001`` serves every model below ``--models-dir`` by its
folder's name: GET /health, GET /v1/models, POST /v1/chat/completions and POST /v1/completions,
streaming or not.  A model's chat template decides what it reads of a chat: in the tiny zoo, the
last user message only.  Where a request offers tools, a reply that calls one of them by its name
becomes a tool call; what a model writes before a ``|`` is its reasoning.  Request fields that the
server does not know are ignored.  Two judges (``judges.py``) take chats that ask for a grading.
Failures carry an OpenAI-shaped ``{"error": {...}}`` body: 404 for an unknown model, 400 for a
malformed request.
"""

import argparse
import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

import torch
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse

from examples.tiny_zoo.generation import (
    END_OF_THOUGHT,
    ChatRequest,
    CompletionRequest,
    Generation,
    RequestError,
    Sampling,
    TinyModel,
)
from examples.tiny_zoo.judges import Grading, Judge, LargestJudge, scripted_judge
from examples.tiny_zoo.tool_calls import read_call

MODELS_DIRECTORY = Path(__file__).parent / "models"
WORKER_COUNT = 2
Body = dict[str, Any]


class Writing(Protocol):
    """A reply in the making: iterating yields its text, and then the rest is final."""

    @property
    def request(self) -> Sampling: ...

    @property
    def finish_reason(self) -> str: ...

    def __iter__(self) -> Iterator[str]: ...

    def usage(self) -> dict[str, Any]: ...


class Answer:
    """The shape of a reply as OpenAI's JSON: a chat's or a plain completion's."""

    def __init__(self, generation: Writing, chat: bool) -> None:
        self.generation, self.chat = generation, chat
        self.kind = "chat.completion" if chat else "text_completion"
        self.identity = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())
        request = generation.request
        self.tools = (request.tools or []) if isinstance(request, ChatRequest) else []
        self.thinks = isinstance(request, ChatRequest) and request.reasoning_effort is not None

    def _body(self, kind: str, choices: list[Body], **more: Any) -> Body:
        head = {"id": self.identity, "object": kind, "created": self.created}
        return {**head, "model": self.generation.request.model, "choices": choices, **more}

    def whole(self) -> Body:
        """Generate to the end and give the non-streaming body."""
        text = "".join(self.generation)
        message, finish_reason = self._message(text)
        content: Body = {"message": {"role": "assistant", **message}}
        choice = {
            "index": 0,
            **(content if self.chat else {"text": text}),
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        return self._body(self.kind, [choice], usage=self.generation.usage())

    def _message(self, text: str) -> tuple[Body, str]:
        """Return a message, words or the call of a tool, and why it ends there; the
        steps before an answer by themselves, as vLLM's reasoning parsers do."""
        finish_reason = self.generation.finish_reason
        call = read_call(text, self.tools) if finish_reason == "stop" else None
        if call is None:
            thought, _, words = text.rpartition(END_OF_THOUGHT)
            message: Body = {"reasoning_content": thought} if thought else {}
            return {"content": words, **message}, finish_reason
        return {"content": None, "tool_calls": [call]}, "tool_calls"

    def _chunk(self, delta: Body, finish_reason: str | None = None) -> Body:
        content: Body = {"delta": delta} if self.chat else {"text": delta.get("content", "")}
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": finish_reason}
        kind = "chat.completion.chunk" if self.chat else self.kind
        return self._body(kind, [choice])

    def chunks(self) -> Iterator[Body]:
        """Yield the streaming bodies, each as soon as its token is generated; where tools are
        offered or an effort is asked for, all at the end, when it is known what is an answer."""
        if self.chat:
            yield self._chunk({"role": "assistant", "content": ""})
        if self.tools or self.thinks:
            message, finish_reason = self._message("".join(self.generation))
            for place, call in enumerate(message.get("tool_calls", [])):
                call["index"] = place
            yield self._chunk(message)
        else:
            for piece in self.generation:
                yield self._chunk({"content": piece})
            finish_reason = self.generation.finish_reason
        last = self._chunk({}, finish_reason)
        yield last
        options = self.generation.request.stream_options
        if options and options.include_usage:
            yield {**last, "choices": [], "usage": self.generation.usage()}


class Zoo:
    """The served models, the judges, and the threads they write on.

    Raises FileNotFoundError where ``models_directory`` holds no model.
    """

    def __init__(self, models_directory: Path) -> None:
        folders = sorted(path.parent for path in models_directory.glob("*/config.json"))
        if not folders:
            raise FileNotFoundError(f"no models in {models_directory}")
        self.models = {folder.name: TinyModel(folder) for folder in folders}
        largest = max(self.models.values(), key=TinyModel.parameter_count)
        self.judges: dict[str, Judge] = {
            "scripted-judge": scripted_judge,
            "largest-judge": LargestJudge(largest),
        }
        # The thread count is a setting of each thread, so every worker sets its own.
        self.workers = ThreadPoolExecutor(
            WORKER_COUNT, initializer=partial(torch.set_num_threads, 1)
        )

    def model(self, name: str) -> TinyModel:
        """Find the model of that name; raises RequestError (404) where there is none."""
        if name not in self.models:
            message = f"The model `{name}` does not exist."
            raise RequestError(HTTPStatus.NOT_FOUND, "model_not_found", message)
        return self.models[name]

    def chat(self, request: ChatRequest) -> Writing:
        """Return the reply of the model or judge that the request names."""
        if request.model in self.judges:
            return Grading(self.judges[request.model], request)
        model = self.model(request.model)
        tools, effort = request.tools or (), request.reasoning_effort
        return Generation(model, model.chat_prompt(request.messages, tools, effort), request)

    def complete(self, request: CompletionRequest) -> Writing:
        """Return the model's continuation of the prompt."""
        return Generation(self.model(request.model), request.prompt, request)

    async def respond(self, writing: Writing, chat: bool) -> Response:
        """Write, streaming if the request says so."""
        answer = Answer(writing, chat)
        if writing.request.stream:
            return StreamingResponse(self._events(answer), media_type="text/event-stream")
        loop = asyncio.get_running_loop()
        return JSONResponse(await loop.run_in_executor(self.workers, answer.whole))

    async def _events(self, answer: Answer) -> AsyncIterator[str]:
        loop, chunks = asyncio.get_running_loop(), answer.chunks()
        while chunk := await loop.run_in_executor(self.workers, next, chunks, None):
            yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"


def error_response(status: HTTPStatus, code: str, message: str) -> JSONResponse:
    """Describe a failure in OpenAI's form."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status)


def build_app(models_directory: Path, instance: str = "") -> FastAPI:
    """Build the server's application; loads every model in ``models_directory``. Its health names
    the ``instance``, by which its starter knows it."""
    app, zoo = FastAPI(title="tiny zoo"), Zoo(models_directory)

    @app.exception_handler(RequestError)
    async def refuse(_: Request, error: RequestError) -> JSONResponse:
        return error_response(error.status, error.code, str(error))

    @app.exception_handler(RequestValidationError)
    async def refuse_malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        return error_response(HTTPStatus.BAD_REQUEST, "invalid_request", "; ".join(faults))

    @app.get("/health")
    async def health() -> Body:
        return {"status": "ok", "instance": instance}

    @app.get("/v1/models")
    async def list_models() -> Body:
        entries = [
            {"id": name, "object": "model", "created": 0, "owned_by": "tiny-zoo"}
            for name in (*zoo.models, *zoo.judges)
        ]
        return {"object": "list", "data": entries}

    @app.post("/v1/chat/completions")
    async def chat(request: ChatRequest) -> Response:
        return await zoo.respond(zoo.chat(request), chat=True)

    @app.post("/v1/completions")
    async def complete(request: CompletionRequest) -> Response:
        return await zoo.respond(zoo.complete(request), chat=False)

    return app


def main() -> None:
    """Read the command line and serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="Serve the tiny zoo's models.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--models-dir", type=Path, default=MODELS_DIRECTORY)
    parser.add_argument("--instance", default="", help="A name that GET /health gives back.")
    options = parser.parse_args()
    app = build_app(options.models_dir, options.instance)
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
