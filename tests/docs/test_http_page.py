"""`docs/http.md` describes every header, route, field, counter and refusal, and no other."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from fastapi.routing import APIRoute

from litellm_messplus.inspecting.public import (
    PublicCall,
    PublicHistory,
    PublicLabel,
    PublicOutcome,
)
from litellm_messplus.proxy.feedback import Feedback, FeedbackDesk, Outcome
from litellm_messplus.proxy.http import build_routes
from litellm_messplus.proxy.monitoring import StatusWatch
from litellm_messplus.runtime import Counters
from tests.docs.markdown import ROOT, Document, code_of

PACKAGE = ROOT / "litellm_messplus"
HTTP = Document(ROOT / "docs" / "http.md")


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def described(heading: str, column: str) -> set[str]:
    return {code_of(row.cells[column]) or "" for row in HTTP.under(heading)}


def test_every_header_is_described() -> None:
    source = sources()[PACKAGE / "proxy" / "http.py"]
    sent = re.findall(r'"(x-messplus-[a-z-]+)":', source)

    assert sent
    assert described("Response headers", "Header") == set(sent)


def test_every_route_is_described() -> None:
    desk = cast(FeedbackDesk, None)
    router = build_routes(desk, Counters(), cast(StatusWatch, None))
    routes = {
        f"{method} {re.sub('{.*}', '{id}', route.path)}"
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }

    named = {heading for heading in HTTP.headings if "/messplus/" in heading}
    assert routes == named


def test_every_counter_is_described() -> None:
    counted = {name for source in sources().values() for name in counters_in(source)}

    assert counted
    assert described("GET /messplus/health", "Counter") == counted


def counters_in(source: str) -> Iterator[str]:
    """The names given to `add` and `failure` of something called counters."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=(ast.Attribute(attr=owner) | ast.Name(id=owner)), attr="add" | "failure"
                ),
                args=[ast.Constant(value=str(name)), *_],
            ) if owner.endswith("counters"):
                yield name


def test_every_field_of_feedback_is_described() -> None:
    assert described("POST /messplus/feedback", "Field") == set(Feedback.model_fields)


def test_every_outcome_of_feedback_is_described() -> None:
    assert described("What became of it", "Outcome") == {str(each) for each in Outcome}


def test_every_refusal_is_described() -> None:
    statuses = set(re.findall(r"HTTPException\((\d+)", "".join(sources().values())))

    # LiteLLM's authentication and FastAPI's reading of the body add one each.
    assert {row.cells["Status"] for row in HTTP.under("Refusals")} == {*statuses, "401", "422"}


def example_of_a_request() -> dict[str, Any]:
    (example,) = [
        json.loads(block.code)
        for block in HTTP.blocks
        if block.language == "json" and block.headings[-1] == "GET /messplus/requests/{id}"
    ]
    return cast(dict[str, Any], example)


def test_the_example_of_a_request_has_every_field() -> None:
    example = example_of_a_request()

    assert PublicHistory.model_validate(example).model_fields_set == set(example)
    assert set(example) == set(PublicHistory.model_fields)
    assert set(example["calls"][0]) == set(PublicCall.model_fields)
    assert set(example["labels"][0]) == set(PublicLabel.model_fields)
    assert set(example["outcome"]) == set(PublicOutcome.model_fields)
