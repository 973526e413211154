"""How often each model of the tiny zoo satisfies tasks it was never trained on."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from examples.tiny_zoo.tasks import FAMILIES, Task, is_satisfactory

MODELS_DIRECTORY = Path(__file__).parent / "models"
LONGEST_ANSWER = 32  # tokens


@torch.inference_mode()
def replies(folder: Path, tasks: Sequence[Task]) -> list[str]:
    """Return the saved model's greedy reply to every task, in order."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    alike: dict[int, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        alike[len(task.prompt)].append(index)
    answers = [""] * len(tasks)
    for indices in alike.values():
        chats = [[{"role": "user", "content": tasks[index].prompt}] for index in indices]
        texts = tokenizer.apply_chat_template(chats, tokenize=False)
        inputs = tokenizer(texts, return_tensors="pt")
        output = model.generate(**inputs, max_new_tokens=LONGEST_ANSWER)
        written = output[:, inputs["input_ids"].shape[1] :]
        decoded = tokenizer.batch_decode(written, skip_special_tokens=True)
        for index, reply in zip(indices, decoded, strict=True):
            answers[index] = reply
    return answers


def evaluate(folder: Path, tasks: Sequence[Task]) -> dict[str, float]:
    """Compute the share of ``tasks`` that the saved model satisfies: per family, then
    ``overall``."""
    verdicts: dict[str, list[bool]] = {name: [] for name in (*FAMILIES, "overall")}
    for task, reply in zip(tasks, replies(folder, tasks), strict=True):
        satisfied = is_satisfactory(task, reply)
        verdicts[task.family].append(satisfied)
        verdicts["overall"].append(satisfied)
    return {name: sum(values) / len(values) for name, values in verdicts.items() if values}


def table(shares: dict[str, dict[str, float]]) -> str:
    """Write a Markdown table with a row per family and a column per model."""
    rows = [["family", *shares], ["---"] + ["---:"] * len(shares)]
    for family in (*FAMILIES, "overall"):
        rows.append([family, *(f"{share[family]:.1%}" for share in shares.values())])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
