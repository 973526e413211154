"""Does the answer have the form that the request demands? It finds fault, and never praises."""

from collections.abc import Iterator

from litellm_messplus.labels.answered_call import Answer, AnsweredCall
from litellm_messplus.labels.checks.check import Score
from litellm_messplus.labels.checks.demands import (
    ANY_TOOL,
    Parameters,
    Tools,
    demanded_call,
    demanded_format,
    offered_tools,
)
from litellm_messplus.labels.checks.fitting import Document
from litellm_messplus.labels.checks.sandbox import Sandbox


class JsonSchemaCheck:
    """The text against the request's JSON schema, tool calls against their definitions.

    Says nothing where nothing is demanded, or where the request's own schema is none.
    """

    name = "json_schema"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def check(self, call: AnsweredCall) -> Score | None:
        answer, parameters = call.answer, call.asked.parameters
        if answer is None:
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
    """All that must be JSON. Beside tool calls no text is expected; without arguments, some
    endpoints write none in place of `{}`."""
    for call in answer.tool_calls:
        schema = tools.schemas.get(call.name)
        if schema is not None:
            yield "the tool call", call.arguments or "{}", schema
    schema = demanded_format(parameters)
    if schema is not None and (answer.text or not answer.tool_calls):
        yield "the answer", answer.text, schema
