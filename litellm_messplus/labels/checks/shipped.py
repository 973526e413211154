"""The built-in checks: whether an answer is complete, has the form that its request demands, and is
the one that the request brings along."""

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.labels.checks.check import LimitedFunction, Score
from litellm_messplus.labels.checks.schemas import Document, misfit
from litellm_messplus.labels.source import Answer, AnsweredCall, Finish

# The form that a request demands of its answer, on any surface. What cannot be parsed demands
# nothing.

Parameters = Mapping[str, Any]
Schema = Any
"""JSON schema as the client wrote it: a mapping, True or False, or anything invalid."""

ANY_TOOL = "any tool"
"""Marker for any tool; its space keeps it from being a tool's name."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools on offer: the schema of each one's arguments by its name, None for free text.

    ``are_all`` if the answer can call no others, such as those of a server, whose names the request
    does not contain.
    """

    schemas: Mapping[str, Schema | None] = field(default_factory=dict)
    are_all: bool = False


def demanded_format(parameters: Parameters) -> Schema | None:
    """Return the schema that the text of the answer must fit; None if any text will do."""
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
    """Return the name of the tool that must be called, `ANY_TOOL`, or None if none must be."""
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
    """Return every tool and function of the request. An empty list is not all: a stored prompt may
    have some."""
    given = [*_items(parameters.get("tools")), *_items(parameters.get("functions"))]
    named = [tool for tool in given if _is_named(tool)]
    return Tools(
        schemas={_of(_inner(tool), "name"): _arguments_of(tool) for tool in named},
        are_all=bool(given) and len(named) == len(given),
    )


def _is_named(tool: object) -> bool:
    """Tell whether it is a single tool; a namespace holds several, and a server's have no name
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


# Whether the answer is complete: a check that only finds faults.


class CompleteCheck:
    """A check for empty, cut off and refused answers. It gives no label if the client set the
    length limit, nor without an answer: a failure is no verdict on a model."""

    name = "complete"

    async def check(self, call: AnsweredCall) -> Score | None:
        if call.answer is None or call.is_cut_by_client:
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


# Whether the answer has the form that the request demands: a check that only finds faults.


PATIENCE_SECONDS = 30.0
"""Longest wait for two seconds of computing, on a machine that may be busy."""


class JsonSchemaCheck:
    """Check of the text against the request's JSON schema, of tool calls against their definitions.

    It gives no label if nothing is demanded, if the request's schema is invalid or too large, or if
    the answer is cut at a length limit of the client.
    """

    name = "json_schema"

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._misfit = LimitedFunction(misfit, PATIENCE_SECONDS)

    async def check(self, call: AnsweredCall) -> Score | None:
        answer, parameters = call.answer, call.request.parameters
        if answer is None or call.is_cut_by_client:
            return None
        tools = offered_tools(parameters)
        fault = _missing_call(answer, tools, demanded_call(parameters))
        fault = fault or _unknown_call(answer, tools)
        documents = [] if fault else list(_documents(answer, parameters, tools))
        if documents:
            async with self._turn:  # one thread computes at a time
                fault = await self._misfit(documents)
        return Score(0.0, fault) if fault else None


def _missing_call(answer: Answer, tools: Tools, demanded: str | None) -> str | None:
    if demanded is None:
        return None
    if demanded == ANY_TOOL:
        # If tools of a server are offered, one of those may have been called.
        is_missing = not answer.tool_calls and tools.are_all
    else:
        is_missing = all(call.name != demanded for call in answer.tool_calls)
    return "the tool that had to be called was not" if is_missing else None


def _unknown_call(answer: Answer, tools: Tools) -> str | None:
    known = all(call.name in tools.schemas for call in answer.tool_calls)
    return None if known or not tools.are_all else "a tool was called that is not on offer"


def _documents(answer: Answer, parameters: Parameters, tools: Tools) -> Iterator[Document]:
    """Yield all that must be JSON. With tool calls no text is expected; for a call without
    arguments, some endpoints write nothing in place of `{}`."""
    for call in answer.tool_calls:
        schema = tools.schemas.get(call.name)
        if schema is not None:
            yield "the tool call", call.arguments or "{}", schema
    schema = demanded_format(parameters)
    if schema is not None and (answer.text or not answer.tool_calls):
        yield "the answer", answer.text, schema


# Whether the answer is the one that the request brings along, as in an evaluation.

REFERENCE = "messplus_reference"
"""The key of the right answer in the metadata of a request."""
_WORD = re.compile(r"-?\d+(?:[.,]\d+)*|\w+")


class ReferenceCheck:
    """Comparison of the whole answer with the request's reference, a text or a number. It gives no
    label without one."""

    name = "reference"

    async def check(self, call: AnsweredCall) -> Score | None:
        reference = call.request.metadata.get(REFERENCE)
        if call.answer is None or not isinstance(reference, str | int | float):
            return None
        return Score(1.0 if words(call.answer.text) == words(str(reference)) else 0.0)


def words(text: str) -> list[str]:
    """Return the words and numbers of a text, without case, spaces, punctuation and Unicode form.
    A number keeps its sign, and the separators between its digits."""
    folded = unicodedata.normalize("NFKC", text.replace("\u2212", "-")).casefold()
    return _WORD.findall(folded)
