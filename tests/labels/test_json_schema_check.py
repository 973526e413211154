"""`json_schema` holds answers to the form that their request demands, on every surface."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.checks.check import CheckTimeoutError, Sandbox, Score
from litellm_messplus.labels.checks.shipped import JsonSchemaCheck
from litellm_messplus.labels.checks.worker import misfit
from litellm_messplus.labels.source import Answer, Finish, ToolCall
from tests.support.checking import GARBAGE, SameProcess, ended

SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
NAMED = {"name": "add", "description": "Adds."}
FORMATS: dict[str, dict[str, Any]] = {
    "chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
    },
    "responses": {"text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}},
    "Anthropic messages": {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    "Anthropic messages, newer": {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}
    },
}
TOOLS: dict[str, dict[str, Any]] = {
    "chat": {"tools": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}]},
    "chat, older": {"functions": [{**NAMED, "parameters": SCHEMA}]},
    "responses": {"tools": [{"type": "function", **NAMED, "parameters": SCHEMA}]},
    "Anthropic messages": {"tools": [{**NAMED, "input_schema": SCHEMA}]},
}
every_format = pytest.mark.parametrize("parameters", FORMATS.values(), ids=FORMATS)
every_tool = pytest.mark.parametrize("parameters", TOOLS.values(), ids=TOOLS)


@pytest.fixture
def check() -> JsonSchemaCheck:
    return JsonSchemaCheck(SameProcess())


def calling(name: str, arguments: str) -> Answer:
    return Answer("", (ToolCall(name, arguments),))


@every_format
async def test_an_answer_that_the_client_cut_short_is_not_held_to_a_schema(
    check: JsonSchemaCheck, parameters: dict[str, Any]
) -> None:
    cut = Answer('{"su', finish=Finish.LENGTH)
    assert await check.check(ended(cut, parameters=parameters, is_limited=True)) is None
    assert await check.check(ended(cut, parameters=parameters)) is not None


@every_format
async def test_an_answer_that_fits_its_schema_is_not_praised(
    check: JsonSchemaCheck, parameters: dict[str, Any]
) -> None:
    assert await check.check(ended('{"sum": 42}', parameters=parameters)) is None


@every_format
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The sum is 42.", "the answer cannot be read as JSON"),
        ('```json\n{"sum": 42}\n```', "the answer cannot be read as JSON"),
        ('{"sum": NaN}', "the answer cannot be read as JSON"),
        ("", "the answer cannot be read as JSON"),
        ('{"sum": "secret"}', "the answer does not fit the JSON schema (type)"),
        ("{}", "the answer does not fit the JSON schema (required)"),
        (
            '{"sum": 1, "secret": 2}',
            "the answer does not fit the JSON schema (additionalProperties)",
        ),
    ],
)
async def test_an_answer_that_does_not_fit_is_unsatisfactory_and_not_quoted(
    check: JsonSchemaCheck, parameters: dict[str, Any], text: str, reason: str
) -> None:
    assert await check.check(ended(text, parameters=parameters)) == Score(0.0, reason)


async def test_json_of_any_schema_must_be_an_object(check: JsonSchemaCheck) -> None:
    for surface in (
        {"response_format": {"type": "json_object"}},
        {"text": {"format": {"type": "json_object"}}},
    ):
        assert await check.check(ended('{"any": [1]}', parameters=surface)) is None
        assert await check.check(ended("[1]", parameters=surface)) is not None


@every_tool
async def test_a_call_that_fits_its_tool_is_not_praised(
    check: JsonSchemaCheck, parameters: dict[str, Any]
) -> None:
    assert await check.check(ended(calling("add", '{"sum": 1}'), parameters=parameters)) is None


@every_tool
@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("add", "{}", "the tool call does not fit the JSON schema (required)"),
        ("add", "", "the tool call does not fit the JSON schema (required)"),
        ("add", '{"sum": 1', "the tool call cannot be read as JSON"),
        ("guess", "{}", "a tool was called that is not on offer"),
    ],
)
async def test_a_call_that_does_not_fit_is_unsatisfactory(
    check: JsonSchemaCheck, parameters: dict[str, Any], name: str, arguments: str, reason: str
) -> None:
    found = await check.check(ended(calling(name, arguments), parameters=parameters))

    assert found == Score(0.0, reason)


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
async def test_a_tool_that_must_be_called_is_missed(
    check: JsonSchemaCheck, choice: dict[str, Any]
) -> None:
    parameters = {**TOOLS["chat"], **choice}

    assert await check.check(ended("I will not.", parameters=parameters)) == Score(
        0.0, "the tool that had to be called was not"
    )
    assert await check.check(ended(calling("add", '{"sum": 1}'), parameters=parameters)) is None


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"response_format": {"type": "text"}},
        {**TOOLS["chat"], "tool_choice": "auto"},
        {"tool_choice": "required", "tools": [{"type": "web_search"}]},
        {"tool_choice": {"type": "web_search"}, "tools": [{"type": "web_search"}]},
    ],
    ids=str,
)
async def test_where_no_form_is_demanded_any_words_will_do(
    check: JsonSchemaCheck, parameters: dict[str, Any]
) -> None:
    assert await check.check(ended("Some words.", parameters=parameters)) is None


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [{"type": "mcp", "server_label": "s"}, *TOOLS["responses"]["tools"]],
        [{"type": "namespace", "name": "n", "tools": TOOLS["responses"]["tools"]}],
    ],
    ids=str,
)
async def test_a_tool_that_a_server_may_offer_is_not_unknown(
    check: JsonSchemaCheck, tools: list[Any]
) -> None:
    assert await check.check(ended(calling("guess", "{}"), parameters={"tools": tools})) is None


async def test_a_tool_of_free_text_takes_any(check: JsonSchemaCheck) -> None:
    custom = {"tools": [{"type": "custom", "custom": {"name": "run"}}]}

    assert await check.check(ended(calling("run", "print('hi')"), parameters=custom)) is None


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
async def test_a_request_whose_own_schema_is_none_says_nothing_of_the_answer(
    check: JsonSchemaCheck, schema: Any
) -> None:
    parameters = {"text": {"format": {"type": "json_schema", "schema": schema}}}

    assert await check.check(ended('{"sum": "x"}', parameters=parameters)) is None


async def test_a_failed_call_has_no_form(check: JsonSchemaCheck) -> None:
    assert await check.check(ended(None, parameters=FORMATS["chat"])) is None


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:8]))
async def test_garbage_does_not_fit(check: JsonSchemaCheck, text: str) -> None:
    assert await check.check(ended(text, parameters=FORMATS["chat"])) is not None


@pytest.mark.parametrize("garbage", [None, 7, "x", [None, 7, [[]]], {"type": 3}, {"format": []}])
async def test_a_client_may_write_nonsense(check: JsonSchemaCheck, garbage: Any) -> None:
    names = ("tools", "functions", "tool_choice", "response_format", "text", "output_config")
    for name in names:
        assert await check.check(ended("words", parameters={name: garbage})) is None


async def test_a_schema_that_takes_for_ever_is_given_up_and_the_next_is_checked() -> None:
    sandbox = Sandbox(cpu_seconds=0.2)
    check = JsonSchemaCheck(sandbox)
    schema = {"type": "string", "pattern": "^(a+)+$"}
    parameters = {"text": {"format": {"type": "json_schema", "schema": schema}}}
    try:
        with pytest.raises(CheckTimeoutError):
            await check.check(ended(json.dumps("a" * 50 + "!"), parameters=parameters))
        assert await check.check(ended('{"sum": 1}', parameters=FORMATS["chat"])) is None
    finally:
        await sandbox.close()


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
def test_whatever_is_json_fits_the_schema_that_takes_all(
    document: Any, is_ascii: bool, indent: int
) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii, indent=indent)

    assert (
        misfit([("it", text, True), ("it", text, {}), ("it", text, {"enum": [document]})]) is None
    )
    assert misfit([("it", text, False)]) is not None
    assert misfit([("it", text, {"not": {"enum": [document]}})]) is not None
