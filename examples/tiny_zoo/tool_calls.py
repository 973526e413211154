"""Calls of tools, as a tiny model writes them (``name(argument)``) and as OpenAI's API does."""

import json
import re
import uuid
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, Json

_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


class Function(BaseModel):
    """One function that a request offers; ``parameters`` is a JSON schema."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class Tool(BaseModel):
    """One tool that a request offers; other kinds than functions are refused."""

    type: Literal["function"]
    function: Function


class CalledFunction(BaseModel):
    """One call: the function's name, and its arguments as JSON."""

    name: str
    arguments: Json[dict[str, Any]]


class ToolCall(BaseModel):
    """One call in a message that a client sends back."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


def read_call(text: str, tools: Sequence[Tool]) -> dict[str, Any] | None:
    """Return the call that a model wrote, as a message carries it; None for any other text.

    The text between the brackets is the tool's first parameter, whatever it holds: whether it makes
    sense, the tool decides.
    """
    found = _CALL.fullmatch(text.strip())
    if found is None:
        return None
    name, written = found.groups()
    for tool in tools:
        if tool.function.name == name:
            parameters = list(tool.function.parameters.get("properties", {}))
            arguments = json.dumps(dict(zip(parameters, [written], strict=False)))
            function = {"name": name, "arguments": arguments}
            return {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}
    return None
