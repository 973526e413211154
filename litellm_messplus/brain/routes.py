"""The routes under `/messplus`, and what a client is told where they fail."""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, WithJsonSchema
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.brain.feedback import Accepted, Feedback, FeedbackDesk
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.modes import StaleRevisionError
from litellm_messplus.brain.monitoring import StatusWatch
from litellm_messplus.brain.workers import Readiness
from litellm_messplus.figures.figure import Plain
from litellm_messplus.inspecting.logged import PublicHistory, public_history
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import (
    JournalFullError,
    NotWrittenError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
    UnloggedRequestError,
    UnsettledError,
)
from litellm_messplus.status.build import LAST
from litellm_messplus.status.figures import SCHEMA
from litellm_messplus.store.reading import ReadingTakesTooLongError

AWAY: dict[type[Exception], str] = {
    JournalFullError: "nothing was written, try again",
    NotWrittenError: "nothing was written, and will not be: try again",
    UnsettledError: "whether it was written is not known yet. Send it again, it counts once",
}
"""The message to a client whose verdict the database does not take."""
UNANSWERED: tuple[type[Exception], ...] = (OSError, SQLAlchemyError, *AWAY)
"""The errors of a database that does not answer; TimeoutError is an OSError."""


Check = Callable[[Request], Awaitable[Caller]]
"""The access check of a route; it raises an HTTPException for a caller without access."""


class Access(NamedTuple):
    """The access checks of the proxy: for every key, for administrators, and for administrators
    where a browser without a key is sent to the page."""

    caller: Check
    administrator: Check
    administrator_or_page: Check


def build_routes(
    desk: FeedbackDesk, counters: Counters, watch: StatusWatch, access: Access
) -> APIRouter:
    """Build the routes of feedback, requests and status; each but `ready` checks access."""
    router = APIRouter(tags=["messplus"])

    @router.post("/messplus/feedback")
    async def feedback(
        body: Feedback, asking: Annotated[Caller, Depends(access.caller)]
    ) -> Accepted:
        """Report whether an answer satisfied. The reply comes when the verdict is durable."""
        with refusals(counters):
            return await desk.accept(body, asking)

    @router.get("/messplus/requests/{given}", response_model=PublicHistory)
    async def request(given: str, asking: Annotated[Caller, Depends(access.caller)]) -> BaseModel:
        """Show the decision for a request: estimates, costs, queue, probability and reason."""
        with refusals(counters):
            return public_history(await desk.look_up(given, asking))

    @router.get("/messplus/status", dependencies=[Depends(access.administrator_or_page)])
    async def status(
        window: Annotated[int, Query(ge=1, le=100_000)] = LAST,
    ) -> Annotated[Plain, WithJsonSchema(SCHEMA)]:
        """Show where each promise stands, at what cost, and what needs attention."""
        with refusals(counters):
            return await watch.read(window)

    @router.get("/messplus/metrics", dependencies=[Depends(access.administrator)])
    async def metrics() -> PlainTextResponse:
        """Show the same figures for Prometheus, from memory if the database is away."""
        return PlainTextResponse(await watch.metrics(), media_type=CONTENT_TYPE_LATEST)

    @router.get("/messplus/ready")
    async def ready() -> PlainTextResponse:
        """Tell only whether this worker routes, without a key."""
        found = watch.readiness()
        return PlainTextResponse(found, 503 if found is Readiness.ABSENT else 200)

    @router.get("/messplus/health", dependencies=[Depends(access.administrator)])
    async def health() -> dict[str, int]:
        """Show what failed or was left out since the start, counted by all workers."""
        return watch.counters()

    return router


@contextmanager
def refusals(counters: Counters) -> Iterator[None]:
    """Translate our errors into HTTP responses that a client can act on."""
    try:
        yield
    except UnloggedRequestError as error:
        raise HTTPException(404, str(error)) from error
    except UnknownRequestError as error:
        raise HTTPException(404, f"no request of this key is known as {error}") from error
    except (StaleRevisionError, TooManyVerdictsError) as error:
        raise HTTPException(409, str(error)) from error
    except TooOftenError as error:
        later = {"retry-after": str(math.ceil(error.retry_seconds))}
        raise HTTPException(429, str(error), headers=later) from error
    except ReadingTakesTooLongError as error:
        counters.failure("readings_given_up", str(error))
        raise HTTPException(503, f"{error}: try again later") from error
    except UNANSWERED as error:
        counters.failure("database_failures", "a client was told to try again")
        detail = AWAY.get(type(error), "try again")
        raise HTTPException(503, f"the database does not answer: {detail}") from error
