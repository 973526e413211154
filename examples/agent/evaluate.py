"""How many tasks a model of the agent solves alone, with its tools and without the calculator."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.agent.loop import LONGEST_REPLY, Message, attempt
from examples.agent.tasks import KINDS, Task, is_solved
from examples.agent.tools import PRICE, TOOLS
from examples.tiny_zoo.generation import ChatRequest, Generation, TinyModel
from examples.tiny_zoo.server import Answer

MODELS_DIRECTORY = Path(__file__).parent / "models"


def evaluate(folder: Path, tasks: Sequence[Task]) -> dict[str, float]:
    """Compute the share of ``tasks`` that the saved model solves: by kinds of goods, all of them,
    and all of them without the calculator."""
    model = TinyModel(folder)
    solved = [_solves(model, task, TOOLS) for task in tasks]
    shares = {
        f"{kinds + 1} calls of tools": _share(
            [found for task, found in zip(tasks, solved, strict=True) if len(task.wanted) == kinds]
        )
        for kinds in KINDS
    }
    alone = [_solves(model, task, [PRICE]) for task in tasks]
    return {**shares, "overall": _share(solved), "without the calculator": _share(alone)}


def _solves(model: TinyModel, task: Task, tools: list[dict[str, Any]]) -> bool:
    def ask(messages: list[Message]) -> Message:
        body = {"model": "", "messages": messages, "tools": tools, "max_tokens": LONGEST_REPLY}
        request = ChatRequest.model_validate(body)
        prompt = model.chat_prompt(request.messages, request.tools or ())
        answer = Answer(Generation(model, prompt, request), chat=True).whole()
        message: Message = answer["choices"][0]["message"]
        return message

    return is_solved(task, attempt(task, ask))


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def table(shares: dict[str, dict[str, float]]) -> str:
    """Write a Markdown table with a row per kind of task and a column per model."""
    rows = [["tasks of", *shares], ["---"] + ["---:"] * len(shares)]
    for kind in next(iter(shares.values())):
        rows.append([kind, *(f"{share[kind]:.1%}" for share in shares.values())])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
