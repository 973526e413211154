"""`complete` and `json_schema` find fault with an answer's form, on every surface, and never
praise one."""

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.checks.check import Check, CheckTimeoutError, Score
from litellm_messplus.labels.checks.schemas import DEPTH, ITEMS, SECONDS, VALUES, misfit
from litellm_messplus.labels.checks.shipped import CompleteCheck, JsonSchemaCheck
from litellm_messplus.labels.source import Answer, Finish, ToolCall
from tests.support.checking import GARBAGE, ended

COMPLETE, FORM = CompleteCheck(), JsonSchemaCheck()
SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
NAMED = {"name": "add", "description": "Adds."}
OF_SCHEMA = {"type": "json_schema", "schema": SCHEMA}
FORMATS: dict[str, dict[str, Any]] = {
    "chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
    },
    "responses": {"text": {"format": OF_SCHEMA}},
    "Anthropic messages": {"output_format": OF_SCHEMA},
    "Anthropic messages, newer": {"output_config": {"format": OF_SCHEMA}},
}
TOOLS: dict[str, dict[str, Any]] = {
    "chat": {"tools": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}]},
    "chat, older": {"functions": [{**NAMED, "parameters": SCHEMA}]},
    "responses": {"tools": [{"type": "function", **NAMED, "parameters": SCHEMA}]},
    "Anthropic messages": {"tools": [{**NAMED, "input_schema": SCHEMA}]},
}
UNREADABLE, UNFIT = "cannot be read as JSON", "does not fit the JSON schema"
CUT = Answer('{"su', finish=Finish.LENGTH)
MISSED = "the tool that had to be called was not"


def calling(name: str, arguments: str) -> Answer:
    return Answer("", (ToolCall(name, arguments),))


ADDED = calling("add", '{"sum": 1}')


async def fault(check: Check, answer: Answer | str | None, **of_call: Any) -> str | None:
    """What the check finds wrong; None where it says nothing."""
    score = await check.check(ended(answer, **of_call))
    assert score is None or score == Score(0.0, score.reason)
    return None if score is None else score.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(""), "empty"),
        (Answer(" \n\t"), "empty"),
        (Answer("Once upon a", finish=Finish.LENGTH), "cut off by length"),
        (Answer("", finish=Finish.LENGTH), "cut off by length"),
        (Answer("half of", finish=Finish.CONTENT_FILTER), "stopped by a content filter"),
        (Answer("", finish=Finish.STOP, refusal="I cannot"), "refused"),
        (Answer("42", finish=Finish.STOP), None),
        (Answer("42"), None),
        (Answer("", (ToolCall("add", "{}"),), Finish.TOOL_CALLS), None),
        (Answer("", others=("image_generation_call",)), None),
        (None, None),
        *((text, None if text.strip() else "empty") for text in GARBAGE),
    ],
    ids=lambda given: ascii(given)[:24],
)
async def test_an_incomplete_answer_is_bad(answer: Answer | str | None, reason: str | None) -> None:
    assert await fault(COMPLETE, answer) == reason


@pytest.mark.parametrize("is_served", [True, False])
async def test_a_failure_is_no_verdict_on_a_model(is_served: bool) -> None:
    for check, parameters in ((COMPLETE, {}), (FORM, FORMATS["chat"])):
        assert await fault(check, None, is_served=is_served, parameters=parameters) is None


@pytest.mark.parametrize("parameters", FORMATS.values(), ids=FORMATS)
async def test_only_a_cut_that_the_client_asked_for_is_no_fault(parameters: dict[str, Any]) -> None:
    for check in (COMPLETE, FORM):
        assert await fault(check, CUT, parameters=parameters, is_limited=True) is None
        assert await fault(check, CUT, parameters=parameters) is not None
        assert await fault(check, "", parameters=parameters, is_limited=True) is not None


@pytest.mark.parametrize("parameters", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"sum": 42}', None),
        ("The sum is 42.", UNREADABLE),
        ('```json\n{"sum": 42}\n```', UNREADABLE),
        ('{"sum": NaN}', UNREADABLE),
        ("", UNREADABLE),
        ('{"sum": "secret"}', f"{UNFIT} (type)"),
        ("{}", f"{UNFIT} (required)"),
        ('{"sum": 1, "secret": 2}', f"{UNFIT} (additionalProperties)"),
    ],
)
async def test_an_answer_that_does_not_fit_is_unsatisfactory_and_not_quoted(
    parameters: dict[str, Any], text: str, wrong: str | None
) -> None:
    assert await fault(FORM, text, parameters=parameters) == (wrong and f"the answer {wrong}")


@pytest.mark.parametrize("parameters", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ADDED, None),
        (calling("add", "{}"), f"the tool call {UNFIT} (required)"),
        (calling("add", ""), f"the tool call {UNFIT} (required)"),
        (calling("add", '{"sum": 1'), f"the tool call {UNREADABLE}"),
        (calling("guess", "{}"), "a tool was called that is not on offer"),
    ],
)
async def test_a_call_that_does_not_fit_is_unsatisfactory(
    parameters: dict[str, Any], answer: Answer, reason: str | None
) -> None:
    assert await fault(FORM, answer, parameters=parameters) == reason


@pytest.mark.parametrize(
    "choice",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "add"}},
        {"tool_choice": {"type": "function", "name": "add"}},
        {"tool_choice": {"type": "function", "function": {"name": "add"}}},
        {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}},
        {"function_call": {"name": "add"}},
    ],
    ids=str,
)
async def test_a_tool_that_must_be_called_is_missed(choice: dict[str, Any]) -> None:
    parameters = {**TOOLS["chat"], **choice}

    assert await fault(FORM, "I will not.", parameters=parameters) == MISSED
    assert await fault(FORM, ADDED, parameters=parameters) is None


SEARCH, MCP = {"type": "web_search"}, {"type": "mcp", "server_label": "s"}
ADD = TOOLS["responses"]["tools"]


@pytest.mark.parametrize(
    ("answer", "parameters"),
    [
        ("Some words.", {}),
        ("Some words.", {"response_format": {"type": "text"}}),
        ("Some words.", {**TOOLS["chat"], "tool_choice": "auto"}),
        ("Some words.", {"tool_choice": "required", "tools": [SEARCH]}),
        ("Some words.", {"tool_choice": SEARCH, "tools": [SEARCH]}),
        ('{"any": [1]}', {"response_format": {"type": "json_object"}}),
        ('{"any": [1]}', {"text": {"format": {"type": "json_object"}}}),
        # tools that a server may offer, or whose argument is free text
        (calling("guess", "{}"), {"tools": []}),
        (calling("guess", "{}"), {"tools": [MCP, *ADD]}),
        (calling("guess", "{}"), {"tools": [{"type": "namespace", "name": "n", "tools": ADD}]}),
        (
            calling("run", "print('hi')"),
            {"tools": [{"type": "custom", "custom": {"name": "run"}}]},
        ),
    ],
    ids=ascii,
)
async def test_no_demand_of_form_no_fault(answer: Answer | str, parameters: dict[str, Any]) -> None:
    assert await fault(FORM, answer, parameters=parameters) is None


async def test_json_of_any_schema_must_be_an_object() -> None:
    kind = {"type": "json_object"}
    for parameters in ({"response_format": kind}, {"text": {"format": kind}}):
        assert await fault(FORM, "[1]", parameters=parameters) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"required": "sum"},
        "no schema",
        [1],
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"properties": {"sum": {"pattern": "("}}},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
    ids=str,
)
async def test_a_request_whose_own_schema_is_none_says_nothing_of_the_answer(schema: Any) -> None:
    parameters = {"text": {"format": {"type": "json_schema", "schema": schema}}}

    assert await fault(FORM, '{"sum": "x"}', parameters=parameters) is None


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:8]))
async def test_garbage_does_not_fit(text: str) -> None:
    assert await fault(FORM, text, parameters=FORMATS["chat"]) is not None


@pytest.mark.parametrize("garbage", [None, 7, "x", [None, 7, [[]]], {"type": 3}, {"format": []}])
async def test_a_client_may_write_nonsense(garbage: Any) -> None:
    for name in ("tools", "functions", "tool_choice", "response_format", "text", "output_config"):
        assert await fault(FORM, "words", parameters={name: garbage}) is None


HANGS = {"type": "string", "pattern": "^(a|aa)+$"}
DOUBLING = {
    "$defs": {
        f"at{level}": {"allOf": [{"$ref": f"#/$defs/at{level + 1}"}] * 2} for level in range(40)
    }
    | {"at40": True},
    "$ref": "#/$defs/at0",
}
"""Follows 2 ** 40 references."""


@pytest.mark.parametrize("key", ["$schema", "title"])
@pytest.mark.parametrize(
    "schema",
    [
        HANGS,
        {"patternProperties": {HANGS["pattern"]: True}},
        {"patternProperties": {HANGS["pattern"]: True}, "additionalProperties": False},
        {"additionalProperties": HANGS},
        {"propertyNames": HANGS},
        {"properties": {"x": {"not": {"anyOf": [HANGS]}}}},
        DOUBLING,
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_a_schema_that_takes_for_ever_is_given_up(schema: dict[str, Any], key: str) -> None:
    """In any place, and where it names its dialect."""
    named = {key: "https://json-schema.org/draft/2020-12/schema", **schema}
    text = "a" * 60 + "!"
    document = text if schema is HANGS else {text: text, "x": text}
    begun = time.thread_time()

    with pytest.raises(CheckTimeoutError):
        misfit([("it", json.dumps(document), named)], seconds=0.1)

    assert time.thread_time() - begun < SECONDS


async def test_a_pattern_that_never_ends_holds_up_neither_the_loop_nor_the_next() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    slow = {"text": {"format": {"type": "json_schema", "schema": HANGS}}}
    counting = asyncio.create_task(count())
    with pytest.raises(CheckTimeoutError):
        await fault(FORM, json.dumps("a" * 60 + "!"), parameters=slow)
    counting.cancel()

    assert turns > 10
    assert await fault(FORM, '{"sum": 1}', parameters=FORMATS["chat"]) is None


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "maxItems": 0}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("small", "large", "document"),
    [
        ({"enum": ["y"] * ITEMS}, {"enum": ["y"] * (ITEMS + 1)}, "x"),
        (
            {"maxProperties": 0, "properties": {str(n): True for n in range(VALUES - 3)}},
            {"maxProperties": 0, "properties": {str(n): True for n in range(VALUES - 2)}},
            {"x": 1},
        ),
        (nested(DEPTH - 2), nested(DEPTH), "[" * DEPTH + "1" + "]" * DEPTH),
        ({"pattern": "y" * 1_000}, {"pattern": "y" * 1_001}, "x"),
    ],
    ids=["list", "values", "depth", "pattern"],
)
def test_a_huge_schema_says_nothing_of_the_answer(small: Any, large: Any, document: Any) -> None:
    text = document if str(document).startswith("[") else json.dumps(document)

    assert misfit([("it", text, small)], seconds=60) is not None  # a slow machine's, when traced
    assert misfit([("it", text, large)], seconds=60) is None


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"uniqueItems": True, "maxItems": 0}, [{"x": n} for n in range(ITEMS + 1)]),
        ({"pattern": "x", "maxLength": 0}, "y" * 10_001),
    ],
    ids=["items", "text"],
)
def test_a_huge_answer_is_not_searched(schema: dict[str, Any], document: Any) -> None:
    assert misfit([("it", json.dumps(document), schema)]) is None
    assert misfit([("it", json.dumps(document[:9]), schema)]) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"sum": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"unevaluatedProperties": False, "patternProperties": {"x": True}},
    ],
    ids=str,
)
def test_what_no_limit_reaches_is_not_followed(schema: dict[str, Any]) -> None:
    assert misfit([("it", '{"sum": 1}', {**schema, "maxProperties": 0})]) is None
    assert misfit([("it", '{"sum": 1}', {"maxProperties": 0})]) is not None


@pytest.mark.parametrize(
    ("schema", "fits", "fits_not"),
    [
        ({"pattern": r"^\p{L}+$"}, "Ähre", "A1"),
        ({"patternProperties": {"^n_": {"type": "integer"}}}, {"n_a": 1, "x": "y"}, {"n_a": "1"}),
        (
            {"patternProperties": {"^n_": True}, "additionalProperties": {"type": "string"}},
            {"n_a": 1, "x": "y"},
            {"n_a": 1, "x": 2},
        ),
        ({"patternProperties": {"^n_": True}, "additionalProperties": False}, {"n_": 1}, {"m": 1}),
        ({"properties": {"a": True}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
        ({"uniqueItems": True}, [1, True, {"a": 1}], [{"a": 1}, {"a": 1}]),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [True, False]},
            [1],
            [1, 2],
        ),
    ],
)
def test_limited_keywords_mean_what_they_say(schema: Any, fits: Any, fits_not: Any) -> None:
    assert misfit([("it", json.dumps(fits), schema)]) is None
    assert misfit([("it", json.dumps(fits_not), schema)]) is not None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.booleans(), st.integers(0, 4))
def test_all_json_fits_a_schema_that_takes_all(document: Any, is_ascii: bool, indent: int) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii, indent=indent)

    assert misfit([("it", text, each) for each in (True, {}, {"enum": [document]})]) is None
    assert misfit([("it", text, False)]) is not None
    assert misfit([("it", text, {"not": {"enum": [document]}})]) is not None
