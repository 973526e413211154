"""The routes under `/messplus`: each request goes to the brain, and its answer back."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from litellm_messplus.brain.contract import Road
from litellm_messplus.brain.messages import Asking
from litellm_messplus.brain.wire import BrainAwayError
from litellm_messplus.brain.workers import Readiness
from litellm_messplus.runtime.counters import Counters

PATHS = "/messplus/{path:path}"
METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"]
LONGEST = 2**20
"""The most bytes of a request's body."""


def build_forwarding(road: Road, worker: str, counters: Counters) -> APIRouter:
    """Build the routes."""
    router = APIRouter()

    async def forward(request: Request) -> Response:
        body = await request.body()
        if len(body) > LONGEST:
            return PlainTextResponse(f"at most {LONGEST} bytes", 413)
        scope = request.scope
        asking = Asking(
            request.method,
            request.url.scheme,
            scope["path"],
            scope.get("root_path", ""),
            scope["query_string"],
            request.headers.raw,
            body,
        )
        try:
            shown = await road.answer(worker, asking)
        except (BrainAwayError, TimeoutError):
            return _away(scope["path"], counters)
        found = Response(shown.body, shown.status)
        found.raw_headers = [(bytes(name), bytes(value)) for name, value in shown.headers]
        return found

    router.add_api_route(PATHS, forward, methods=METHODS, include_in_schema=False)
    return router


def _away(path: str, counters: Counters) -> Response:
    """Answer a client without the brain: whether requests are routed is known here too."""
    if path.endswith("/messplus/metrics"):
        return PlainTextResponse("messplus_up 0.0\n")
    if path.endswith("/messplus/ready"):
        return PlainTextResponse(Readiness.ABSENT, 503)
    counters.failure("brain_away", "a client was told that the brain is away")
    return PlainTextResponse("the brain is away: try again", 503)
