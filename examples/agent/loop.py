"""The agent: asks a model, runs the tools that it calls, and asks again until it answers."""

from collections.abc import Callable
from typing import Any

from examples.agent import tools
from examples.agent.tasks import Task

MOST_CALLS = 8
"""Calls of a model for one task, after which the agent gives up: the longest task takes five, and
an error of a tool one more."""
LONGEST_REPLY = 40
"""Tokens of one reply; the longest call of a tool has 34."""

Message = dict[str, Any]
Ask = Callable[[list[Message]], Message]
"""Sends a chat and returns the assistant's message, both as OpenAI's API writes them."""


def attempt(task: Task, ask: Ask) -> str:
    """Work on a task until the model answers without a tool; the answer, or nothing after
    ``MOST_CALLS`` calls."""
    messages: list[Message] = [{"role": "user", "content": task.question}]
    for _ in range(MOST_CALLS):
        reply = ask(messages)
        calls = reply.get("tool_calls") or []
        if not calls:
            return str(reply.get("content") or "")
        messages.append(reply)
        messages += [_result(call, task) for call in calls]
    return ""


def _result(call: dict[str, Any], task: Task) -> Message:
    """Run one tool; its message."""
    function = call["function"]
    result = tools.run(function["name"], function["arguments"], task.prices)
    return {"role": "tool", "tool_call_id": call["id"], "content": result}
