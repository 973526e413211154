"""Whether two answers say the same, so that nobody need compare them."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

from litellm_messplus.labels.source import Answer, ToolCall

LONGEST = 50_000
"""Characters of an answer that are looked at: of longer ones only the very same are the same."""
SHORT = 80
"""Characters of an answer of one line whose case and marks at the ends mean nothing."""
MARKS = " \t\"'`*_.,;:!?()[]"
FENCE = "```"


def are_same(first: Answer, second: Answer) -> bool:
    """Tell whether both say the same words, the same JSON, and call the same tools with the same
    arguments. What is neither words nor a call of a tool is not looked into."""
    if first.others or second.others or (first.refusal is None) != (second.refusal is None):
        return False
    return _same_calls(first.tool_calls, second.tool_calls) and _same_text(first.text, second.text)


def normalised(text: str) -> str:
    """Normalise Unicode form and drop spaces at the ends of lines; of a short line drop also case
    and the marks around it."""
    lines = [line.rstrip() for line in unicodedata.normalize("NFKC", text).strip().splitlines()]
    if len(lines) == 1 and len(lines[0]) <= SHORT:
        return " ".join(lines[0].casefold().split()).strip(MARKS)
    return "\n".join(lines)


def _same_text(first: str, second: str) -> bool:
    if first == second:
        return True
    if max(len(first), len(second)) > LONGEST:
        return False
    words = normalised(first)
    if words and words == normalised(second):
        return True
    found = _json(first)
    return found is not None and found == _json(second)


def _same_calls(first: Sequence[ToolCall], second: Sequence[ToolCall]) -> bool:
    return [_call(call) for call in first] == [_call(call) for call in second]


def _call(call: ToolCall) -> tuple[str, str]:
    return call.name, _json(call.arguments[:LONGEST]) or call.arguments


def _json(text: str) -> str | None:
    """Write the object or list in one spelling, where the whole text is one, in a fence or not."""
    bare = text.strip()
    if bare.startswith(FENCE) and bare.endswith(FENCE):
        bare = bare.removesuffix(FENCE).partition("\n")[2]
    if not bare.lstrip().startswith(("{", "[")):
        return None
    try:
        found: Any = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return json.dumps(found, sort_keys=True)
