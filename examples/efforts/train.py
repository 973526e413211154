"""Train the model that answers at two efforts, and measure how often it is right at each.

``python -m examples.efforts.train`` trains it from scratch on tasks that are made as they are
needed, half of them with the steps written down, and writes it to ``models/tiny-thinker/`` in the
layout that transformers and vLLM load, and ``models/table.md``. Everything is seeded; nothing is
downloaded.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import torch

from examples.efforts.tasks import DIFFICULTIES, FAMILIES, generate, generate_training, steps
from examples.tiny_zoo.generation import END_OF_THOUGHT, ChatRequest, Generation, Message, TinyModel
from examples.tiny_zoo.tasks import Task, is_satisfactory
from examples.tiny_zoo.training import END, Example, Recipe, Segment, build_tokenizer, save, train

NAME = "tiny-thinker"
MODELS_DIRECTORY = Path(__file__).parent / "models"
CHARACTERS = f" :,=?{END_OF_THOUGHT}012345678abcdelnotu"
CHAT_TEMPLATE = (
    "{{ (messages | selectattr('role', 'equalto', 'user') | list)[-1]['content'] | trim }}"
    "{{ '?' if reasoning_effort == 'high' else '=' }}"
)
"""The last character of a prompt is the effort: ``=`` wants the answer, ``?`` the steps first."""
EFFORTS = ("low", "high")
RECIPE = Recipe(64, 3, 176, DIFFICULTIES[-1], step_count=1000, learning_rate=4e-3, batch_size=64)
EVALUATION_COUNT = 700
EVALUATION_SEED = 20_000


def examples(seed: int) -> Iterator[Example]:
    """Generate the tasks that training reads, each to be answered at one effort."""
    source = random.Random(seed)
    for task in generate_training(RECIPE.step_count * RECIPE.batch_size, seed):
        is_high = source.random() < 0.5
        thought = f"{steps(task.prompt)}{END_OF_THOUGHT}" if is_high else ""
        yield (
            Segment(f"{task.prompt}{'?' if is_high else '='}", False),
            Segment(f"{thought}{task.answer}{END}", True),
        )


def answered(model: TinyModel, task: Task, effort: str) -> tuple[bool, int]:
    """Ask the model for one task: is it right, and how many tokens does it write?"""
    message = Message(role="user", content=task.prompt)
    request = ChatRequest(model=NAME, messages=[message], reasoning_effort=effort)
    reply = Generation(model, model.chat_prompt(request.messages, effort=effort), request)
    words = "".join(reply).rpartition(END_OF_THOUGHT)[2]
    return is_satisfactory(task, words), reply.completion_count


def table(model: TinyModel, tasks: Sequence[Task]) -> str:
    """Measure each effort by the kind of a task and its swaps, as a Markdown table."""
    rows = ["| task, swaps | low: right | tokens | high: right | tokens |"]
    rows.append(f"| --- |{' ---: |' * 4}")
    groups = {
        f"{family}, {least} and {least + 1}": [
            each for each in tasks if each.family == family and 0 <= each.difficulty - least <= 1
        ]
        for family in FAMILIES
        for least in DIFFICULTIES[::2]
    }
    for name, group in {**groups, "all": tasks}.items():
        cells = [name]
        for effort in EFFORTS:
            found = [answered(model, task, effort) for task in group]
            cells += [f"{fmean(ok for ok, _ in found):.1%}", f"{fmean(n for _, n in found):.1f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "".join(f"{row}\n" for row in rows)


def main() -> None:
    """Train the model, unless it is only to be measured, and measure it."""
    parser = argparse.ArgumentParser(description="Train and measure the model of two efforts.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate-only", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = MODELS_DIRECTORY / NAME
    if not options.evaluate_only:
        tokenizer = build_tokenizer(CHARACTERS, CHAT_TEMPLATE)
        model = train(NAME, RECIPE, examples(options.seed), tokenizer, options.seed)
        save(model, tokenizer, folder)
    measured = table(TinyModel(folder), list(generate(EVALUATION_COUNT, EVALUATION_SEED)))
    (MODELS_DIRECTORY / "table.md").write_text(measured)
    print(measured)


if __name__ == "__main__":
    main()
