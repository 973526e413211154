"""Train the three models of the tiny zoo and measure how often each satisfies the tasks.

``python -m examples.tiny_zoo.train`` trains every model from scratch on generated tasks, writes
each to ``models/<name>/`` in the layout transformers and vLLM load, then evaluates them on
held-out tasks and writes ``models/table.md``.  Everything is seeded; nothing is downloaded.
"""

import argparse
from collections.abc import Iterator

from examples.tiny_zoo.evaluate import MODELS_DIRECTORY, evaluate, table
from examples.tiny_zoo.tasks import generate, generate_training
from examples.tiny_zoo.training import END, Example, Recipe, Segment, build_tokenizer, save, train

CHARACTERS = " +:=0123456789abcdefghijklmnopqrstuvwxyz"
CHAT_TEMPLATE = (
    "{% set asked = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{{ asked[-1]['content'] | trim }}="
)
EVALUATION_COUNT = 3_000
EVALUATION_SEED = 20_000
RECIPES = {
    "tiny-small": Recipe(64, 2, 176, hardest=3, step_count=1800, learning_rate=1e-2),
    "tiny-medium": Recipe(128, 4, 344, hardest=4, step_count=1600, learning_rate=5e-3),
    "tiny-large": Recipe(256, 5, 704, hardest=6, step_count=750, learning_rate=3e-3),
}


def examples_for(recipe: Recipe, seed: int) -> Iterator[Example]:
    """Generate the tasks that a recipe's training reads, as it reads them."""
    for task in generate_training(recipe.step_count * recipe.batch_size, seed, recipe.hardest):
        yield Segment(f"{task.prompt}=", False), Segment(f"{task.answer}{END}", True)


def main() -> None:
    """Train the chosen models, then evaluate every model there is."""
    parser = argparse.ArgumentParser(description="Train and evaluate the tiny zoo's models.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--evaluate-only", action="store_true")
    options = parser.parse_args()
    if not options.evaluate_only:
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
