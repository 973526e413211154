"""Train the three models of the tiny zoo and measure how often each satisfies the tasks.

``python -m examples.tiny_zoo.train`` trains every model from scratch on generated tasks, writes
each to ``models/<name>/`` in the layout transformers and vLLM load, then evaluates them on
held-out tasks and writes ``models/table.md``.  Everything is seeded; nothing is downloaded.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from examples.tiny_zoo.evaluate import MODELS_DIRECTORY, evaluate, table
from litellm_messplus.demo.tasks import Task, generate, generate_training

SPECIAL_TOKENS = ("<pad>", "</s>", "<unk>")
CHARACTERS = " +:=0123456789abcdefghijklmnopqrstuvwxyz"
CHAT_TEMPLATE = (
    "{% set asked = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{{ asked[-1]['content'] | trim }}="
)
EVALUATION_COUNT = 3_000
EVALUATION_SEED = 20_000
IGNORED = -100


@dataclass(frozen=True)
class Recipe:
    """Shape and schooling of one model; every attention head has 32 dimensions.

    ``hardest`` is the greatest task difficulty in the training data.  Like the thinner training
    of real small models, it is what leaves a model behind on the harder prompts.
    """

    hidden_size: int
    layer_count: int
    feed_forward_size: int
    hardest: int
    step_count: int
    learning_rate: float
    batch_size: int = 128
    micro_batch_count: int = 4


RECIPES = {
    "tiny-small": Recipe(64, 2, 176, hardest=3, step_count=1800, learning_rate=1e-2),
    "tiny-medium": Recipe(128, 4, 344, hardest=4, step_count=1600, learning_rate=5e-3),
    "tiny-large": Recipe(256, 5, 704, hardest=6, step_count=750, learning_rate=3e-3),
}


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build a tokenizer with one token per character; unknown characters become ``<unk>``."""
    vocabulary = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *CHARACTERS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=512,
        padding_side="left",
    )


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Build a freshly initialised Llama of the recipe's shape."""
    head_count = recipe.hidden_size // 32
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.feed_forward_size,
        num_hidden_layers=recipe.layer_count,
        num_attention_heads=head_count,
        num_key_value_heads=head_count,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def encode(
    tasks: Sequence[Task], tokenizer: PreTrainedTokenizerFast
) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode to token ids and labels, both [tasks, longest]; only the answer and its end carry a
    label."""
    end, padding = tokenizer.eos_token_id, tokenizer.pad_token_id
    prompts = tokenizer([f"{task.prompt}=" for task in tasks])["input_ids"]
    answers = tokenizer([task.answer for task in tasks])["input_ids"]
    rows = [(prompt, [*answer, end]) for prompt, answer in zip(prompts, answers, strict=True)]
    longest = max(len(prompt) + len(answer) for prompt, answer in rows)
    tokens = torch.full((len(rows), longest), padding)
    labels = torch.full((len(rows), longest), IGNORED)
    for index, (prompt, answer) in enumerate(rows):
        length = len(prompt) + len(answer)
        tokens[index, :length] = torch.tensor([*prompt, *answer])
        labels[index, len(prompt) : length] = torch.tensor(answer)
    return tokens, labels


def micro_batches(tasks: list[Task], count: int) -> Iterator[list[Task]]:
    """Split ``tasks`` into ``count`` parts of like length, which keeps padding small."""
    ordered = sorted(tasks, key=lambda task: len(task.prompt) + len(task.answer))
    size = -(-len(ordered) // count)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def summed_loss(
    model: LlamaForCausalLM, tokens: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Compute the cross-entropy in nats, averaged over each task's answer and summed over the
    tasks.

    The average lets a one-digit answer weigh as much as a long one.
    """
    with torch.autocast("cpu", torch.bfloat16):
        # Padding lies to the right of every labelled token, so the causal mask already hides it.
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    targets = labels[:, 1:]
    losses = functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return (losses.view_as(targets).sum(1) / (targets != IGNORED).sum(1)).sum()


class Descent:
    """Muon for the layers' matrices and AdamW for the rest, on one warm-up and cosine schedule.

    Muon learns these tasks in several times fewer steps than AdamW alone.
    """

    def __init__(self, model: LlamaForCausalLM, recipe: Recipe) -> None:
        parameters = [parameter for _, parameter in model.named_parameters()]
        embedding = model.get_input_embeddings().weight
        matrices = [part for part in parameters if part.ndim == 2 and part is not embedding]
        others = [part for part in parameters if part.ndim != 2 or part is embedding]
        rate = recipe.learning_rate
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, rate, betas=(0.9, 0.98), weight_decay=0.0),
        ]
        self.schedules = [
            OneCycleLR(part, rate, recipe.step_count, pct_start=0.08, cycle_momentum=False)
            for part in self.optimizers
        ]

    def step(self) -> None:
        """Apply and clear the gradients, then move the learning rate on."""
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for schedule in self.schedules:
            schedule.step()


def train(name: str, recipe: Recipe, seed: int) -> LlamaForCausalLM:
    """Train one model from scratch, printing its progress."""
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    model = build_model(recipe, tokenizer)
    descent = Descent(model, recipe)
    drawn = generate_training(recipe.step_count * recipe.batch_size, seed, recipe.hardest)
    print(f"{name}: {model.num_parameters():,} parameters", flush=True)
    started = time.monotonic()
    for step in range(1, recipe.step_count + 1):
        tasks = list(islice(drawn, recipe.batch_size))
        batch_loss = 0.0
        for part in micro_batches(tasks, recipe.micro_batch_count):
            loss = summed_loss(model, *encode(part, tokenizer)) / len(tasks)
            torch.autograd.backward(loss)
            batch_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        descent.step()
        if step % 100 == 0:
            spent = time.monotonic() - started
            print(f"{name}: step {step}, loss {batch_loss:.3f}, {spent:.0f} s", flush=True)
    return model


def save(model: LlamaForCausalLM, folder: Path) -> None:
    """Write weights (16-bit floats), configuration and tokenizer to ``folder``."""
    tokenizer = build_tokenizer()
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # transformers 5 writes a class name that 4 lacks; both load the older name.
    settings = folder / "tokenizer_config.json"
    text = settings.read_text().replace("TokenizersBackend", "PreTrainedTokenizerFast")
    settings.write_text(text)
    (folder / "model.safetensors").chmod(0o644)


def main() -> None:
    """Train the chosen models, then evaluate every model there is."""
    parser = argparse.ArgumentParser(description="Train and evaluate the tiny zoo's models.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--evaluate-only", action="store_true")
    options = parser.parse_args()
    if not options.evaluate_only:
        for name in options.models:
            save(train(name, RECIPES[name], options.seed), MODELS_DIRECTORY / name)
    tasks = list(generate(EVALUATION_COUNT, EVALUATION_SEED))
    present = [name for name in RECIPES if (MODELS_DIRECTORY / name).exists()]
    measured = table({name: evaluate(MODELS_DIRECTORY / name, tasks) for name in present})
    (MODELS_DIRECTORY / "table.md").write_text(measured)
    print(measured)


if __name__ == "__main__":
    main()
