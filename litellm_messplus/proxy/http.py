"""The plugin's own routes on the proxy."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from string import printable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import PlainTextResponse
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.errors import (
    JournalFullError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.proxy.authentication import (
    Caller,
    administrator,
    administrator_or_page,
    caller,
)
from litellm_messplus.proxy.feedback import Feedback, FeedbackDesk
from litellm_messplus.proxy.monitoring import StatusWatch
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime import Counters
from litellm_messplus.status.build import WINDOW
from litellm_messplus.store.reading import ReadingTakesTooLongError

# Names that an operator chose, as a response header can carry them.

PLAIN = "".join(sorted(set(printable) - set("\t\n\r\x0b\x0c")))


def header_value(name: str) -> str:
    """The name itself where it is plain ASCII, else percent-encoded: a header that cannot be
    written takes the whole answer with it."""
    return quote(name, safe=PLAIN, errors="replace")


# The headers of a routed answer.


def response_headers(
    record: RequestRecord, model: str | None, cached_from: str | None
) -> dict[str, str]:
    """Of a request that ``model`` answered, None where nobody did or nobody knows; ``cached_from``
    wrote the answer that LiteLLM's cache repeated."""
    headers = {
        "x-messplus-request-id": record.request_id,
        "x-messplus-service-level": header_value(record.service_level),
        "x-messplus-exploration": str(record.is_exploration).lower(),
        "x-messplus-feedback": FEEDBACK_PATH,
    }
    if model is not None:
        headers |= {"x-messplus-model": header_value(model)}
    if cached_from is not None:
        headers |= {"x-messplus-cached-from": header_value(cached_from)}
    return headers


FEEDBACK_PATH = "/messplus/feedback"
HIDDEN_COLUMNS = frozenset({"features", "surface", "position", "key_hash"})


def build_routes(desk: FeedbackDesk, counters: Counters, watch: StatusWatch) -> APIRouter:
    """All routes; each asks LiteLLM's own authentication first."""
    router = APIRouter(tags=["messplus"])

    @router.post(FEEDBACK_PATH)
    async def feedback(
        body: Feedback, asking: Annotated[Caller, Depends(caller)]
    ) -> dict[str, Any]:
        """Say whether an answer satisfied. The reply comes when the verdict is durable."""
        with _refusals(counters):
            return asdict(await desk.accept(body, asking))

    @router.get("/messplus/requests/{given}")
    async def request(given: str, asking: Annotated[Caller, Depends(caller)]) -> dict[str, Any]:
        """The decision for a request: estimates, costs, queue, probability and reason."""
        with _refusals(counters):
            found = await desk.look_up(given, asking)
        return {
            **_shown(found.request),
            "outcome": _shown(found.outcome),
            "calls": [_shown(call) for call in found.calls],
            "labels": [_shown(label) for label in found.labels],
        }

    @router.get("/messplus/status", dependencies=[Depends(administrator_or_page)])
    async def status(
        window: Annotated[int, Query(ge=1, le=100_000)] = WINDOW,
    ) -> dict[str, Any]:
        """Was each promise kept, at what cost, and what needs attention."""
        with _refusals(counters):
            return (await watch.read(window)).as_dict()

    @router.get("/messplus/learned", dependencies=[Depends(administrator)])
    async def learned() -> dict[str, Any]:
        """On which prompts each model is good, how sure that is, and what reading them saves."""
        with _refusals(counters):
            return (await watch.learned()).as_dict()

    @router.get("/messplus/metrics", dependencies=[Depends(administrator)])
    async def metrics() -> PlainTextResponse:
        """The same figures for Prometheus."""
        with _refusals(counters):
            return PlainTextResponse(await watch.metrics())

    @router.get("/messplus/health", dependencies=[Depends(administrator)])
    async def health() -> dict[str, int]:
        """What failed or was left out since the start, counted by all workers."""
        return await watch.counters()

    return router


@contextmanager
def _refusals(counters: Counters) -> Iterator[None]:
    """Our errors as the answers that a client can act on."""
    try:
        yield
    except UnknownRequestError as error:
        raise HTTPException(404, f"no request of this key is known as {error}") from error
    except TooManyVerdictsError as error:
        raise HTTPException(409, str(error)) from error
    except TooOftenError as error:
        later = {"retry-after": str(math.ceil(error.retry_seconds))}
        raise HTTPException(429, str(error), headers=later) from error
    except ReadingTakesTooLongError as error:
        counters.failure("readings_given_up", str(error))
        raise HTTPException(503, f"{error}: try again later") from error
    except (OSError, SQLAlchemyError, JournalFullError) as error:  # TimeoutError is an OSError
        counters.failure("database_failures", "a client was told to try again")
        raise HTTPException(503, "the database does not answer: try again") from error


def _shown(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in HIDDEN_COLUMNS}
