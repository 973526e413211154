"""`docs/http.md` describes every header, route, field, counter and refusal, and no other."""

import json
import re
from collections.abc import Callable
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.errors import (
    JournalFullError,
    RequestGoneError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
)
from litellm_messplus.inspecting.logged import PublicCall, PublicHistory, PublicLabel, PublicOutcome
from litellm_messplus.proxy import authentication
from litellm_messplus.proxy.authentication import Caller, caller
from litellm_messplus.proxy.feedback import Feedback, FeedbackDesk, Outcome
from litellm_messplus.proxy.http import build_routes, response_headers
from litellm_messplus.proxy.monitoring import StatusWatch
from litellm_messplus.proxy.zoos import Change, ZooDesk, ZooSwitch, build_zoo_routes
from litellm_messplus.runtime import Counters
from litellm_messplus.store.reading import ReadingTakesTooLongError
from tests.docs.counters import counted
from tests.support.builders import request
from tests.support.http_page import HTTP, example_of_a_request
from tests.support.markdown import code_of


def described(heading: str, column: str) -> set[str]:
    return {code_of(row.cells[column]) or "" for row in HTTP.under(heading)}


def test_every_header_is_described() -> None:
    sent = response_headers(request(), model="small")

    assert described("Response headers", "Header") == set(sent)


def test_every_route_is_described() -> None:
    desk = cast(FeedbackDesk, None)
    router = build_routes(desk, Counters(), cast(StatusWatch, None))
    zoos = build_zoo_routes(cast(ZooDesk, None), Counters())
    routes = {
        f"{method} {re.sub('{.*}', '{id}', route.path)}"
        for route in (*router.routes, *zoos.routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }

    named = {heading for heading in HTTP.headings if "/messplus/" in heading}
    assert routes == named


def test_every_field_of_a_change_is_described_in_the_words_of_the_code() -> None:
    rows = HTTP.under("PATCH /messplus/zoos/{id}")

    assert {code_of(row.cells["Field"]): row.cells["Meaning"] for row in rows} == {
        name: field.description for name, field in Change.model_fields.items()
    }


def test_the_example_of_a_zoo_has_every_field() -> None:
    text = HTTP.text.partition("## GET /messplus/zoos/{id}")[2]
    example = json.loads(text.partition("```json")[2].partition("```")[0])

    assert set(ZooSwitch.model_validate(example).model_fields_set) == set(ZooSwitch.model_fields)


def test_every_counter_is_described() -> None:
    cells = [row.cells["Counter"] for row in HTTP.under("GET /messplus/health")]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(named) == sorted(counted())


def test_every_field_of_feedback_is_described() -> None:
    assert described("POST /messplus/feedback", "Field") == set(Feedback.model_fields)


def test_every_outcome_of_feedback_is_described() -> None:
    assert described("What became of it", "Outcome") == {str(each) for each in Outcome}


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
    app.include_router(build_routes(cast(FeedbackDesk, desk), Counters(), cast(StatusWatch, None)))
    for dependency in replaced:
        app.dependency_overrides[dependency] = lambda: Caller("key", is_admin=False)
    return TestClient(app)


def status_of(error: Exception) -> int:
    with client(Desk(error), caller) as sender:
        return sender.get("/messplus/requests/r1").status_code


def test_the_example_of_a_request_has_every_field() -> None:
    example = example_of_a_request()

    assert PublicHistory.model_validate(example).model_fields_set == set(example)
    assert set(example) == set(PublicHistory.model_fields)
    assert set(example["calls"][0]) == set(PublicCall.model_fields)
    assert set(example["labels"][0]) == set(PublicLabel.model_fields)
    assert set(example["outcome"]) == set(PublicOutcome.model_fields)
