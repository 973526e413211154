"""What a request demands of the form of its answer, in the words of any surface.

Clients send what they like: what is not understood demands nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.labels.checks.check import Score
from litellm_messplus.labels.checks.sandbox import Sandbox
from litellm_messplus.labels.checks.worker import Document
from litellm_messplus.labels.source import Answer, AnsweredCall, Finish

Parameters = Mapping[str, Any]
Schema = Any
"""A JSON schema as the client wrote it: a mapping, True or False, or nonsense."""

ANY_TOOL = "any tool"
"""More than one word, so that it is the name of none."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools on offer: the schema of each one's arguments by its name, None for free text.

    ``are_all`` says that the answer can call no others: not those of a server, whose names the
    request does not tell.
    """

    schemas: Mapping[str, Schema | None] = field(default_factory=dict)
    are_all: bool = False


def demanded_format(parameters: Parameters) -> Schema | None:
    """Return the schema that the text of the answer must fit; None where any text will do."""
    found = (
        parameters.get("response_format")
        or _of(parameters.get("text"), "format")
        or parameters.get("output_format")
        or _of(parameters.get("output_config"), "format")
    )
    kind = _of(found, "type")
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        return None
    schema = _of(_of(found, "json_schema") or found, "schema")
    return {} if schema is None else schema


def demanded_call(parameters: Parameters) -> str | None:
    """Return the name of the tool that must be called, `ANY_TOOL`, or None where none must be."""
    choice = parameters.get("tool_choice") or parameters.get("function_call")
    if choice in ("required", "any"):
        return ANY_TOOL
    kind = _of(choice, "type")
    if kind == "any":
        return ANY_TOOL
    if kind == "allowed_tools":
        mode = _of(_of(choice, "allowed_tools") or choice, "mode")
        return ANY_TOOL if mode == "required" else None
    name = _of(_inner(choice), "name")
    is_own = kind in (None, "tool", "function", "custom")
    return name if is_own and isinstance(name, str) else None


def offered_tools(parameters: Parameters) -> Tools:
    """Return every tool and function of the request. None is not all: a stored prompt may have
    some."""
    given = [*_items(parameters.get("tools")), *_items(parameters.get("functions"))]
    named = [tool for tool in given if _is_named(tool)]
    return Tools(
        schemas={_of(_inner(tool), "name"): _arguments_of(tool) for tool in named},
        are_all=bool(given) and len(named) == len(given),
    )


def _is_named(tool: object) -> bool:
    """Tell whether it is one tool; a namespace holds several, and a server's tools have no name
    here."""
    return isinstance(_of(_inner(tool), "name"), str) and _of(tool, "tools") is None


def _arguments_of(tool: object) -> Schema | None:
    if _of(tool, "type") == "custom" and _of(tool, "input_schema") is None:
        return None
    inner = _inner(tool)
    schema = _of(inner, "parameters")
    found = _of(inner, "input_schema") if schema is None else schema
    return {} if found is None else found


def _inner(tool: object) -> object:
    return _of(tool, "function") or _of(tool, "custom") or tool


def _items(given: object) -> Iterator[object]:
    if isinstance(given, list | tuple):
        yield from given


def _of(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


# Is the answer all there? A check that finds fault, and never praises.


class CompleteCheck:
    """An empty answer, one that was cut off or refused. Says nothing where the client set the
    length that it was cut at, nor where no answer came: a failure is no verdict on a model."""

    name = "complete"

    async def check(self, call: AnsweredCall) -> Score | None:
        if call.answer is None or call.is_cut_as_asked:
            return None
        fault = _fault(call.answer)
        return Score(0.0, fault) if fault else None


def _fault(answer: Answer) -> str | None:
    if answer.finish is Finish.CONTENT_FILTER:
        return "stopped by a content filter"
    if answer.refusal is not None:
        return "refused"
    if answer.finish is Finish.LENGTH:
        return "cut off by length"
    if not (answer.text.strip() or answer.tool_calls or answer.others):
        return "empty"
    return None


# Does the answer have the form that the request demands? It finds fault, and never praises.


class JsonSchemaCheck:
    """The text against the request's JSON schema, tool calls against their definitions.

    Says nothing where nothing is demanded, where the request's own schema is none, or where the
    answer is cut at a length that the client set.
    """

    name = "json_schema"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def check(self, call: AnsweredCall) -> Score | None:
        answer, parameters = call.answer, call.asked.parameters
        if answer is None or call.is_cut_as_asked:
            return None
        tools = offered_tools(parameters)
        fault = _missing_call(answer, tools, demanded_call(parameters))
        fault = fault or _unknown_call(answer, tools)
        documents = [] if fault else list(_documents(answer, parameters, tools))
        if documents:
            fault = await self._sandbox.run("misfit", documents)
        return Score(0.0, fault) if fault else None


def _missing_call(answer: Answer, tools: Tools, demanded: str | None) -> str | None:
    if demanded is None:
        return None
    if demanded == ANY_TOOL:
        # Where tools of a server are on offer, one of those may have been called.
        is_missing = not answer.tool_calls and tools.are_all
    else:
        is_missing = all(call.name != demanded for call in answer.tool_calls)
    return "the tool that had to be called was not" if is_missing else None


def _unknown_call(answer: Answer, tools: Tools) -> str | None:
    known = all(call.name in tools.schemas for call in answer.tool_calls)
    return None if known or not tools.are_all else "a tool was called that is not on offer"


def _documents(answer: Answer, parameters: Parameters, tools: Tools) -> Iterator[Document]:
    """Yield all that must be JSON. Beside tool calls no text is expected; without arguments, some
    endpoints write none in place of `{}`."""
    for call in answer.tool_calls:
        schema = tools.schemas.get(call.name)
        if schema is not None:
            yield "the tool call", call.arguments or "{}", schema
    schema = demanded_format(parameters)
    if schema is not None and (answer.text or not answer.tool_calls):
        yield "the answer", answer.text, schema
