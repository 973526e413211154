"""The built-in checks: whether an answer is complete, has the form that its request demands, and
matches the reference in the request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr, ValidationError

from litellm_messplus.labels.checks.check import Sandbox, Score
from litellm_messplus.labels.checks.worker import Document
from litellm_messplus.labels.source import Answer, AnsweredCall, Finish
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.promise import NotNegative, Settings

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


class JsonSchemaCheck:
    """Check of the text against the request's JSON schema, of tool calls against their definitions.

    It gives no label if nothing is demanded, if the request's schema is invalid, or if the answer
    is cut at a length limit of the client.
    """

    name = "json_schema"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def check(self, call: AnsweredCall) -> Score | None:
        answer, parameters = call.answer, call.request.parameters
        if answer is None or call.is_cut_by_client:
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


# Whether the answer matches the reference in the request.

METADATA_KEY = "messplus_reference"
Words = Annotated[StrictStr, Field(min_length=1)]


class MalformedReferenceError(Exception):
    """Error in a reference, described without quoting it."""


class TextReference(Settings):
    """The answer itself, or a pattern that is found in it."""

    match: Literal["exact", "normalised", "regex"]
    value: Words

    def spelled(self) -> dict[str, str]:
        """Return it as `worker.matches` reads it."""
        return self.model_dump()


class Tolerance(Settings):
    """The distance that a number may be off: so much, or such a share of the reference."""

    absolute: NotNegative = 0.0
    relative: NotNegative = 0.0


class NumericReference(Settings):
    """The last number of the answer."""

    match: Literal["numeric"]
    value: StrictInt | StrictFloat
    tolerance: NotNegative | Tolerance = 0.0

    def spelled(self) -> dict[str, str]:
        """Return it as `worker.matches` reads it."""
        given = self.tolerance
        tolerance = given if isinstance(given, Tolerance) else Tolerance(absolute=given)
        number = {"value": self.value, **tolerance.model_dump()}
        return {"match": self.match, **{name: str(found) for name, found in number.items()}}


Reference = TextReference | NumericReference
KINDS: dict[Any, type[Reference]] = {
    "exact": TextReference,
    "normalised": TextReference,
    "regex": TextReference,
    "numeric": NumericReference,
}


class ReferenceCheck:
    """A comparison with the request's reference: satisfactory if it matches, unsatisfactory if not,
    no label without a reference."""

    name = "reference"

    def __init__(self, sandbox: Sandbox, counters: Counters) -> None:
        self._sandbox = sandbox
        self._counters = counters

    async def check(self, call: AnsweredCall) -> Score | None:
        given = call.request.metadata.get(METADATA_KEY)
        if given is None or call.answer is None:
            return None
        try:
            return await self._score(read_reference(given), call.answer.text)
        except MalformedReferenceError as error:
            self._counters.failure("references_malformed", f"a reference was malformed: {error}")
            return None

    async def _score(self, reference: Reference, text: str) -> Score:
        found = await self._sandbox.run("matches", reference.spelled(), text)
        if found is None:
            raise MalformedReferenceError(f"its value is none that {reference.match} can match")
        return Score(1.0) if found else Score(0.0, f"no {reference.match} match")


def read_reference(given: object) -> Reference:
    """Read a reference; a plain text is matched normalised. Raises MalformedReferenceError."""
    if isinstance(given, str):
        given = {"match": "normalised", "value": given}
    if not isinstance(given, Mapping):
        raise MalformedReferenceError("it is neither a text nor an object")
    kind = given.get("match")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise MalformedReferenceError(f"match is none of {', '.join(KINDS)}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise MalformedReferenceError("; ".join(map(_problem, problems))) from None


def _problem(found: Mapping[str, Any]) -> str:
    if found["type"] == "extra_forbidden":  # whose location is the client's text
        return "it has a key that is not known"
    return f"{found['loc'][0]}: {found['msg']}"
