"""What is shown of a request is a list of names: a new column is not shown by itself."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import RowMapping

from litellm_messplus.brain.access import ACCESS, caller
from litellm_messplus.brain.feedback import FeedbackDesk
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.monitoring import StatusWatch
from litellm_messplus.brain.routes import build_routes
from litellm_messplus.inspecting.logged import (
    PublicCall,
    PublicLabel,
    PublicOutcome,
    PublicRequest,
    PublicRow,
)
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store.history import History
from litellm_messplus.store.tables import calls, labels, outcomes, requests
from tests.support.http_page import example_of_a_request

SECRET = "what a new column holds"
INSIDE = {
    PublicRequest: {
        *("features", "surface", "position", "key_hash", "prefix", "conversation_draw", "session"),
        "is_alone",
    },
    PublicCall: {"position", "answer_surface", "cost_largest"},
    PublicLabel: {"position", "counts"},
    PublicOutcome: {
        "judging_cost",
        *("position", "day", "hour", "zoo", "service_level", "alpha", "arm", "counts", "queue"),
        *("is_exploration", "encode_seconds", "deciding_seconds", "unstated"),
        *("exploration_cost", "failure", "is_cache_hit", "seconds", "served_cost", "is_labelled"),
    },
}
"""What is never shown, by what leaves it out."""


class OneRequest:
    """A desk that finds the same request by any id; every row has a column more."""

    async def look_up(self, given: str, asking: Caller) -> History:
        example = example_of_a_request()
        return History(
            _row(example),
            _row(example["outcome"]),
            [_row(call) for call in example["calls"]],
            [_row(label) for label in example["labels"]],
        )


def _row(row: Mapping[str, Any]) -> RowMapping:
    return cast(RowMapping, {**row, "new_column": SECRET, "key_hash": SECRET})


def test_a_new_column_does_not_appear_in_the_answer() -> None:
    app = FastAPI()
    desk = cast(FeedbackDesk, OneRequest())
    app.include_router(build_routes(desk, Counters(), cast(StatusWatch, None), ACCESS))
    app.dependency_overrides[caller] = lambda: Caller(None, is_admin=True)

    answer = TestClient(app).get("/messplus/requests/any")

    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert answer.json() == example_of_a_request()


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        (PublicRequest, requests.columns),
        (PublicCall, calls.columns),
        (PublicLabel, labels.columns),
        (PublicOutcome, outcomes.columns),
    ],
)
def test_every_column_is_public_or_named_as_inside(shape: type[PublicRow], columns: Any) -> None:
    """Whoever adds a column decides here whether a client may see it."""
    names = {column.name for column in columns}

    assert set(shape.model_fields) == names - INSIDE[shape]


def test_every_route_answers_in_a_form_of_its_own() -> None:
    router = build_routes(cast(FeedbackDesk, None), Counters(), cast(StatusWatch, None), ACCESS)
    loose = {
        route.path
        for route in router.routes
        if isinstance(route, APIRoute) and route.response_model in (None, dict, dict[str, Any])
    }

    assert loose == {"/messplus/metrics", "/messplus/ready"}  # text
