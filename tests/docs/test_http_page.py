"""The examples of `docs/http.md` have every field, and its refusals are those that are sent."""

import json
from collections.abc import Callable
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.brain import access as authentication
from litellm_messplus.brain.access import ACCESS, caller
from litellm_messplus.brain.feedback import FeedbackDesk
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.monitoring import StatusWatch
from litellm_messplus.brain.routes import build_routes
from litellm_messplus.brain.zoos import ZooSwitch
from litellm_messplus.inspecting.logged import PublicCall, PublicHistory, PublicLabel, PublicOutcome
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import (
    JournalFullError,
    RequestGoneError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.store.reading import ReadingTakesTooLongError
from tests.support.http_page import HTTP, example_of_a_request


def test_the_example_of_a_zoo_has_every_field() -> None:
    text = HTTP.text.partition("## GET /messplus/zoos/{id}")[2]
    example = json.loads(text.partition("```json")[2].partition("```")[0])

    assert set(ZooSwitch.model_validate(example).model_fields_set) == set(ZooSwitch.model_fields)


def test_the_example_of_a_request_has_every_field() -> None:
    example = example_of_a_request()
    parts: list[tuple[dict[str, object], type[BaseModel]]] = [
        (example, PublicHistory),
        (example["calls"][0], PublicCall),
        (example["labels"][0], PublicLabel),
        (example["outcome"], PublicOutcome),
    ]

    assert PublicHistory.model_validate(example).model_fields_set == set(example)
    assert [set(part) for part, _ in parts] == [set(model.model_fields) for _, model in parts]


ERRORS = (
    UnknownRequestError("r1"),
    RequestGoneError("r1"),
    TooManyVerdictsError("r1.0 has 100 verdicts already"),
    TooOftenError("too much feedback of this key", 60.0),
    ReadingTakesTooLongError(15.0),
    JournalFullError("full"),
    TimeoutError(),
    SQLAlchemyError("away"),
)


def test_every_refusal_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {status_of(error) for error in ERRORS}
    with client(Desk()) as without_key:
        refused.add(without_key.get("/messplus/requests/r1").status_code)
        monkeypatch.setattr(authentication, "caller", nobody_in_particular)
        refused.add(without_key.get("/messplus/status").status_code)
    with client(Desk(), caller) as with_key:
        refused.add(with_key.post("/messplus/feedback", json={}).status_code)

    assert {row.cells["Status"] for row in HTTP.under("Refusals")} == set(map(str, refused))


class Desk:
    """A feedback desk on which every look-up fails in the given way."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def look_up(self, _given: str, _caller: Caller) -> None:
        assert self._error is not None
        raise self._error


async def nobody_in_particular(_request: object) -> Caller:
    return Caller("key", is_admin=False)


def client(desk: Desk, *replaced: Callable[..., object]) -> TestClient:
    app = FastAPI()
    app.include_router(
        build_routes(cast(FeedbackDesk, desk), Counters(), cast(StatusWatch, None), ACCESS)
    )
    for dependency in replaced:
        app.dependency_overrides[dependency] = lambda: Caller("key", is_admin=False)
    return TestClient(app)


def status_of(error: Exception) -> int:
    with client(Desk(error), caller) as sender:
        return sender.get("/messplus/requests/r1").status_code
