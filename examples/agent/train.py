"""Train the two models of the agent, and measure how many tasks each solves.

``python -m examples.agent.train`` trains them from scratch on transcripts of agents that do
everything right, writes each to ``models/<name>/`` in the layout that transformers and vLLM load,
and writes ``models/table.md``. Everything is seeded; nothing is downloaded.
"""

import argparse
import random
from collections.abc import Iterator

import torch

from examples.agent.evaluate import MODELS_DIRECTORY, evaluate, table
from examples.agent.tasks import Task, generate, generate_training
from examples.agent.tools import UNKNOWN
from examples.tiny_zoo.training import END, Example, Recipe, Segment, build_tokenizer, save, train

CHARACTERS = " :,?()*+-<>0123456789abcdefghijklmnopqrstuvwxyz"
CHAT_TEMPLATE = (
    "{{ (tools or []) | map(attribute='function.name') | join(',') }}:"
    "{% for message in messages %}"
    "{% if message.role == 'user' %}{{ message.content | trim }}"
    "{% elif message.role == 'tool' %}<{{ message.content | trim }}"
    "{% elif message.role == 'assistant' %}>"
    "{% for call in message.tool_calls or [] %}"
    "{{ call.function.name }}({{ call.function.arguments.values() | join(',') }})"
    "{% else %}{{ message.content }}{% endfor %}{{ eos_token }}"
    "{% endif %}"
    "{% endfor %}>"
)
"""A chat as text: ``price,calculate:QUESTION>CALL</s><RESULT>``, and so on."""
RECIPES = {
    "agent-small": Recipe(64, 2, 176, hardest=2, step_count=250, learning_rate=1e-2, batch_size=32),
    "agent-large": Recipe(
        128, 4, 344, hardest=3, step_count=700, learning_rate=5e-3, batch_size=32
    ),
}
WITHOUT_CALCULATOR = 0.15
"""Share of the transcripts in which the only tool is the price list."""
MISSPELT = 0.1
"""Share of the look-ups in which an item was first misspelt, by which recovery is learned."""
EVALUATION_COUNT = 300
EVALUATION_SEED = 20_000


def transcript(task: Task, source: random.Random) -> Example:
    """Write how a perfect agent solves the task; ``source`` draws its tools and what goes wrong."""
    has_calculator = source.random() >= WITHOUT_CALCULATOR
    tools = "price,calculate" if has_calculator else "price"
    segments = [Segment(f"{tools}:{task.question}>", False)]

    def call(written: str, result: str, is_learned: bool = True) -> None:
        segments.append(Segment(f"{written}{END}", is_learned))
        segments.append(Segment(f"<{result}>", False))

    for goods in task.wanted:
        if source.random() < MISSPELT:
            call(f"price({_misspell(goods, source)})", UNKNOWN, is_learned=False)
        call(f"price({goods})", str(task.prices[goods]))
    if has_calculator:
        call(f"calculate({task.expression})", task.answer)
    return [*segments, Segment(f"{task.answer}{END}", True)]


def _misspell(goods: str, source: random.Random) -> str:
    """Leave one letter out."""
    place = source.randrange(len(goods))
    return goods[:place] + goods[place + 1 :]


def examples_for(recipe: Recipe, seed: int) -> Iterator[Example]:
    """Generate the transcripts that a recipe's training reads, as it reads them."""
    source = random.Random(seed)
    for task in generate_training(recipe.step_count * recipe.batch_size, seed, recipe.hardest):
        yield transcript(task, source)


def main() -> None:
    """Train the chosen models, then evaluate every model there is."""
    parser = argparse.ArgumentParser(description="Train and evaluate the agent's models.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="*", choices=RECIPES, default=list(RECIPES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models:
        recipe, tokenizer = RECIPES[name], build_tokenizer(CHARACTERS, CHAT_TEMPLATE)
        drawn = examples_for(recipe, options.seed)
        model = train(name, recipe, drawn, tokenizer, options.seed)
        save(model, tokenizer, MODELS_DIRECTORY / name)
    tasks = list(generate(EVALUATION_COUNT, EVALUATION_SEED))
    present = [name for name in RECIPES if (MODELS_DIRECTORY / name).exists()]
    measured = table({name: evaluate(MODELS_DIRECTORY / name, tasks) for name in present})
    (MODELS_DIRECTORY / "table.md").write_text(measured)
    print(measured)


if __name__ == "__main__":
    main()
