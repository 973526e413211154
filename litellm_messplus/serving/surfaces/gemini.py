"""Gemini's `generateContent`, read as the chat completion that asks for the same.

LiteLLM itself translates it for most models, and reports every answer as a chat's. Clients may send
anything, so nothing here fails: what cannot be read is left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Given = Mapping[str, Any]
ARGUMENTS = ("contents", "config", "generationConfig", "systemInstruction", "system_instruction")
OTHERS = ("tools", "toolConfig", "tool_config", "safetySettings", "cachedContent")
"""The arguments of Gemini's API, which the chat has in its own form or not at all."""
CONFIG = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
}
"""A chat's names for what may be configured."""
CHOICES = {"ANY": "required", "NONE": "none"}


def as_chat(given: Given) -> dict[str, Any]:
    """Return the arguments of a request as those of a chat completion."""
    found = {name: each for name, each in given.items() if name not in (*ARGUMENTS, *OTHERS)}
    config = _mapping(_first(given, "config", "generationConfig"))
    found |= {name: config[own] for own, name in CONFIG.items() if own in config}
    if config.get("responseMimeType") == "application/json":
        schema = _first(config, "responseJsonSchema", "responseSchema")
        whole = {"name": "answer", "schema": schema}
        found["response_format"] = (
            {"type": "json_schema", "json_schema": whole} if schema else {"type": "json_object"}
        )
    if tools := list(_tools(given.get("tools"))):
        found["tools"] = tools
        calling = _mapping(_first(given, "toolConfig", "tool_config"))
        mode = _mapping(calling.get("functionCallingConfig")).get("mode")
        found["tool_choice"] = CHOICES.get(str(mode), "auto")
    system = _first(given, "systemInstruction", "system_instruction")
    return {**found, "messages": [*_messages(system, "system"), *_messages(given.get("contents"))]}


def _messages(contents: object, role: str | None = None) -> Iterator[dict[str, Any]]:
    for content in contents if isinstance(contents, list) else [contents]:
        if isinstance(content, str):
            content = {"parts": [content]}
        if isinstance(content, Mapping):
            is_own = content.get("role") == "model"
            own = role or ("assistant" if is_own else "user")
            yield from _message(own, _list(content.get("parts")))


def _message(role: str, parts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the message of the parts of one turn, and those with the results of tools."""
    said: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            part = {"text": part}
        if not isinstance(part, Mapping) or part.get("thought"):
            continue
        if isinstance(part.get("text"), str):
            said.append({"type": "text", "text": part["text"]})
        elif call := _mapping(part.get("functionCall")):
            inner = {"name": str(call.get("name")), "arguments": _json(call.get("args") or {})}
            calls.append({"id": _id(call, len(calls)), "type": "function", "function": inner})
        elif result := _mapping(part.get("functionResponse")):
            own = {"tool_call_id": _id(result, len(results)), "role": "tool"}
            results.append({**own, "content": _json(result.get("response") or {})})
        elif media := _media(part):
            said.append(media)
    yield from results
    words: Any = said[0]["text"] if len(said) == 1 and "text" in said[0] else said
    if calls:
        yield {"role": role, "content": words or None, "tool_calls": calls}
    elif words or not results:
        yield {"role": role, "content": words or ""}


def _media(part: Given) -> dict[str, Any] | None:
    """Return an attachment: its bytes, or where it is; None for a part of another kind."""
    inline = _mapping(_first(part, "inlineData", "inline_data"))
    media = inline or _mapping(_first(part, "fileData", "file_data"))
    kind = str(_first(media, "mimeType", "mime_type") or "")
    if not media:
        return None
    data = f"data:{kind};base64,{media.get('data')}" if inline else None
    where = data or str(_first(media, "fileUri", "file_uri"))
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": where}}
    name = "file_data" if inline else "file_id"
    return {"type": "file", "file": {name: where, "format": kind}}


def _tools(given: object) -> Iterator[dict[str, Any]]:
    """Yield the client's functions, and the tools that run at Gemini by their name."""
    for tool in _list(given):
        declared = _list(_first(_mapping(tool), "functionDeclarations", "function_declarations"))
        for each in map(_mapping, declared):
            parameters = _first(each, "parametersJsonSchema", "parameters")
            inner = {"name": str(each.get("name")), "description": each.get("description")}
            found = {**inner, "parameters": parameters}
            known = {name: value for name, value in found.items() if value is not None}
            yield {"type": "function", "function": known}
        if not declared and isinstance(tool, Mapping):
            yield dict(tool)


def _id(call: Given, place: int) -> str:
    """Return the id of a call, or of its result: many clients send none, but the tool's name."""
    return str(call.get("id") or f"call_{call.get('name')}_{place}")


def _first(given: Given, *names: str) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _mapping(value: object) -> Given:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, default=str)
