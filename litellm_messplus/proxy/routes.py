"""The plugin's own routes on the proxy."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.counters import Counters
from litellm_messplus.errors import NotYourRequestError, UnknownRequestError
from litellm_messplus.proxy.authentication import Caller, caller
from litellm_messplus.proxy.feedback import Feedback, FeedbackDesk

FEEDBACK_PATH = "/messplus/feedback"
HIDDEN_COLUMNS = frozenset({"features", "position", "key_hash"})


def build_routes(desk: FeedbackDesk, counters: Counters) -> APIRouter:
    """All routes; each asks LiteLLM's own authentication first."""
    router = APIRouter(tags=["messplus"])

    @router.post(FEEDBACK_PATH)
    async def feedback(
        body: Feedback, asking: Annotated[Caller, Depends(caller)]
    ) -> dict[str, Any]:
        """Say whether an answer satisfied. The reply comes when the verdict is durable."""
        try:
            return asdict(await desk.accept(body, asking))
        except (UnknownRequestError, NotYourRequestError) as error:
            raise _refusal(error) from error
        except (TimeoutError, SQLAlchemyError) as error:
            counters.failure("feedback_failures", "feedback could not be written")
            raise HTTPException(503, "the feedback could not be stored: send it again") from error

    @router.get("/messplus/requests/{given}")
    async def request(given: str, asking: Annotated[Caller, Depends(caller)]) -> dict[str, Any]:
        """The decision for a request: estimates, costs, queue, probability and reason."""
        try:
            found = await desk.look_up(given, asking)
        except (UnknownRequestError, NotYourRequestError) as error:
            raise _refusal(error) from error
        return {
            **_shown(found.request),
            "calls": [_shown(call) for call in found.calls],
            "labels": [_shown(label) for label in found.labels],
        }

    @router.get("/messplus/health")
    async def health(asking: Annotated[Caller, Depends(caller)]) -> dict[str, int]:
        """What failed or was left out since the start, counted."""
        return counters.as_dict()

    return router


def _refusal(error: Exception) -> HTTPException:
    if isinstance(error, NotYourRequestError):
        return HTTPException(403, f"request {error} was made with another key")
    return HTTPException(404, f"no request is known as {error}")


def _shown(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in HIDDEN_COLUMNS}
